#!/usr/bin/env bash
#
# This project, built inside its own mount, passes its unit tests there.
# timeout: 900
# alone
. "$(dirname "$0")/lib.sh"
limit=800

copy_sources() {
	mkdir -p "$mnt/project"
	tar -C "$top" --exclude=./build* --exclude=./.git -cf - . | tar -C "$mnt/project" -xf -
	exists "$mnt/project/meson.build"
}

builds() {
	cd "$mnt/project"
	meson setup build >"$tmp/setup.log" 2>&1 || { tail -n 20 "$tmp/setup.log"; return 1; }
	ninja -C build >"$tmp/ninja.log" 2>&1 || { tail -n 20 "$tmp/ninja.log"; return 1; }
	build/tools/ddbfs version
	# Nothing to do a second time: times are kept as make and ninja need them.
	ninja -C build -n | grep 'no work to do'
}

passes_its_tests() {
	cd "$mnt/project"
	mkdir "$mnt/tmp"
	DDBFS_TEST_TMP=$mnt/tmp meson test -C build --no-rebuild --no-suite crash >"$tmp/test.log" 2>&1 ||
		{ tail -n 20 "$tmp/test.log"; grep '^not ok' build/meson-logs/testlog.txt; return 1; }
	grep '^Ok: ' "$tmp/test.log"
	[ "$(sed -n 's/^Ok: *//p' "$tmp/test.log")" -gt 0 ]
}

restored_build_is_up_to_date() {
	cd "$mnt/project"
	apart rm -rf build
	ddbfs undo .
	ninja -C build -n | grep 'no work to do'
	build/tools/ddbfs version
}

mount_new
it 'its sources are copied in' copy_sources
it 'meson and ninja build it' builds
it 'its unit tests pass, with their stores in the mount' passes_its_tests
it 'the build directory, deleted and undone, is up to date' restored_build_is_up_to_date
it 'leaves a store that checks clean' check_clean
done_testing

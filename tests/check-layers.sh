#!/usr/bin/env bash
#
# check-layers.sh - the rules of which folder may know what, by grep and nm.
#
#   tests/check-layers.sh [BUILD]      checks the tree; with a build directory also its
#                                      objects, for variables that can change
#   tests/check-layers.sh --self-test  plants one violation of each rule in a copy
#                                      and sees that it is found
set -uo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
bad=0

complain() {
	printf '%s: %s\n' "$1" "$2"
	bad=1
}

# sources FOLDER...: the C files of folders, those that are there.
sources() {
	local folder

	for folder in "$@"; do
		find "$folder" -name '*.[ch]' -type f
	done | sort
}

# may_include FOLDER REGEX: "..." includes of the folder's files match REGEX, all of it.
may_include() {
	local file line

	while read -r file; do
		while read -r line; do
			[[ $line =~ ^($2)$ ]] || complain "$file" "may not include \"$line\""
			[ -f "$line" ] || complain "$file" "includes \"$line\", which is not a path from the root"
		done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file")
	done < <(sources "$1")
}

# only_in HEADER-REGEX FILE-REGEX: <...> includes that match stand in those files only.
only_in() {
	local file

	while read -r file; do
		[[ $file =~ ^($2)$ ]] || complain "$file" "may not include <$1>"
	done < <(sources store lifecycle fs tools | xargs grep -lE "^[[:space:]]*#[[:space:]]*include[[:space:]]*<($1)>")
}

check_includes() {
	local store='store/(store|item|key|record|body|clock|util)\.h'
	local lifecycle='lifecycle/(lifecycle|tree)\.h'

	may_include store 'store/[a-z-]+\.h'
	may_include lifecycle "$store|lifecycle/[a-z-]+\.h"
	may_include fs "$store|$lifecycle|fs/[a-z-]+\.h"
	may_include tools "$store|$lifecycle|fs/(fs|control|bytes)\.h|tools/[a-z-]+\.h"
	only_in 'lmdb\.h' 'store/(engine|lmdb)-[a-z-]+\.[ch]'
	only_in 'sodium[/a-z_]*\.h' 'store/(seal|keyring)\.c|tools/passphrase\.c'
	only_in '(fuse3/)?fuse[a-z_]*\.h' 'fs/[a-z-]+\.[ch]'
}

# The half of fs/ that knows no FUSE is the list fs_core_sources of its meson.build.
check_fuse_free() {
	local name file

	while read -r name; do
		for file in "fs/$name.c" "fs/$name.h"; do
			[ -f "$file" ] || continue
			! grep -qE '#[[:space:]]*include[[:space:]]*<(fuse3/)?fuse' "$file" ||
				complain "$file" 'belongs to the half that knows no FUSE'
		done
	done < <(sed -n '/^fs_core_sources/,/^[^ ]*)/p' fs/meson.build | grep -o "'[a-z-]*\.c'" | tr -d "'" |
		sed 's/\.c$//')
}

check_prefixes() {
	local hit

	while read -r hit; do
		complain "${hit%%:*}" "has a key prefix, which only store/key.c may: ${hit#*:}"
	done < <(sources store lifecycle fs tools | grep -v '^store/key\.c$' |
		xargs grep -nE '"[^"]*(ACT|DEL|ARC|SHD)#' /dev/null |
		grep -vE ':[0-9]+:[[:space:]]*(/?\*|//)')
}

# Variables that can change, in the objects of the program's libraries: none, but for what the process has one of
# by nature: the start of libsodium, and the handler of SIGBUS with the one it replaced.
check_globals() {
	local object symbol

	while read -r object; do
		while read -r symbol; do
			complain "${object#"$1"/}" "has a variable that is not constant: $symbol"
		done < <(objdump -t "$object" |
			awk '$0 ~ / O / && $0 ~ /[ \t](\.bss|\.data|\.tbss|\.tdata|\*COM\*)(\.[a-z]+\.[^ \t]*)?[ \t]/ &&
				$0 !~ /\.data\.rel\.ro/ { print $NF }' |
			grep -vxE 'init_once|guard_once|guard_previous')
	done < <(find "$1"/{store,lifecycle,fs,tools} -name '*.o' -path '*.p/*' 2>/dev/null | sort)
}

check_tree() {
	cd "$1" || return 1
	bad=0
	check_includes
	check_fuse_free
	check_prefixes
	return $bad
}

# ---- self-test -------------------------------------------------------------

# plant NAME FILE TEXT: the tree with TEXT at the end of FILE is complained about, naming FILE.
plant() {
	local output

	cp "$copy/$2" "$copy.saved" 2>/dev/null || : >"$copy.saved"
	printf '%s\n' "$3" >>"$copy/$2"
	output=$(check_tree "$copy")
	if ! grep -q "^$2: " <<<"$output"; then
		echo "not found: $1 in $2"
		missed=1
	fi
	cp "$copy.saved" "$copy/$2"
}

plant_global() {
	mkdir -p "$copy/objects/store/libstore.a.p" "$copy/objects/fs/libfs.a.p"
	printf 'int counter = 1;\n' | gcc -x c -c -o "$copy/objects/store/libstore.a.p/planted.c.o" -
	printf 'const char *const table[] = { "a" }; extern const int n; const int n = 3;\n' |
		gcc -fPIC -x c -c -o "$copy/objects/fs/libfs.a.p/constant.c.o" -
	bad=0
	if [ "$(check_globals "$copy/objects")" != \
		'store/libstore.a.p/planted.c.o: has a variable that is not constant: counter' ]; then
		echo "not found, or not only: a global variable"
		missed=1
	fi
}

self_test() {
	local copy missed=0
	copy=$(mktemp -d) || return 1
	# shellcheck disable=SC2064
	trap "rm -rf '$copy' '$copy.saved'" EXIT

	cp -a "$top"/{store,lifecycle,fs,tools} "$copy"/
	grep -q "'namei.c'" "$copy/fs/meson.build" || sed -i "s/^fs_core_sources = files(/&'namei.c'/" "$copy/fs/meson.build"
	if ! (check_tree "$copy"); then
		echo "the tree itself breaks rules"
		return 1
	fi
	plant 'an include upwards' store/util.h '#include "lifecycle/lifecycle.h"'
	plant 'an include upwards' lifecycle/tree.h '#include "fs/namei.h"'
	plant 'a private header' fs/namei.h '#include "store/engine.h"'
	plant 'a private header' tools/planted.c '#include "store/seal.h"'
	plant 'an include that is not rooted' store/store.h '#include "key.h"'
	plant 'the database' lifecycle/planted.c '#include <lmdb.h>'
	plant 'the database' store/item.h '#include <lmdb.h>'
	plant 'cryptography' tools/planted.c '#include <sodium.h>'
	plant 'FUSE below fs' lifecycle/planted.c '#include <fuse_lowlevel.h>'
	plant 'FUSE in the half without' fs/namei.c '#include <fuse_lowlevel.h>'
	plant 'a key prefix' lifecycle/planted.c 'static const char *p = "DEL#";'
	plant_global
	return $missed
}

if [ "${1:-}" = --self-test ]; then
	self_test
else
	check_tree "$top"
	[ -z "${1:-}" ] || check_globals "$(cd "$1" && pwd)"
	exit $bad
fi

#!/usr/bin/env bash
#
# Full disks: what is acknowledged stays, and removing, restoring and emptying
# always work. The stores lie on small file systems of their own.
# timeout: 600
. "$(dirname "$0")/lib.sh"
limit=150
disk=$tmp/disk

small_store() {
	mkdir -p "$disk"
	mount -t tmpfs -o size="$1" none "$disk"
	store=$disk/store
	ddbfs init "$store" && mount_up
}

gone_disk() {
	cd /
	mount_down
	ddbfs check "$store"
	umount "$disk"
}

fill() {
	local n=0

	mkdir -p "$1"
	while head -c 300000 /dev/urandom >"$1/f$n" 2>/dev/null; do n=$((n + 1)); done
	echo "$n files until the disk was full"
	# The rest, in small pieces, until nothing goes in any more.
	gives ENOSPC make "$1/small" 100000 2000
}

full_disk() {
	small_store 200m
	cd "$mnt"
	mkdir keep small
	for ((i = 0; i < 1000; i++)); do echo "small $i" >small/s$i; done
	echo kept >keep/f
	echo deleted >keep/g && rm keep/g
	fill d
	equal ENOSPC "$("$sys" write x creat,wronly "$(printf '%03000d' 1)")" 'writing when full'
	rm -f x
	content keep/f kept
	equal "$(for ((i = 0; i < 1000; i++)); do echo "small $i"; done)" "$(seq -f 'small/s%g' 0 999 | xargs cat)" 'small files'
	# Deleting needs no space; nor does bringing back.
	rm small/s*
	lists small
	equal 1000 "$(count small/.trash)" 'entries'
	mv keep/.trash/g keep/g
	content keep/g deleted
	mv small/.trash/s7 small/
	content small/s7 'small 7'
	# Undo takes all of a batch, of which one is back already.
	ddbfs undo . >/dev/null
	equal 1000 "$(count small -type f)" 'restored by undo'
	rm small/s*
	mv d .trash/
	ddbfs trash empty --now . >/dev/null
	free() { head -c 50000000 /dev/urandom >again; }
	within_seconds 30 free
	content keep/f kept
	rm again
	gone_disk
}

space_comes_back() {
	local before size

	# With DDBFS_LOAD_FULL the GiB that BEHAVIOURS.md speaks of, which lies in memory meanwhile.
	size=${DDBFS_LOAD_FULL:+1073741824}
	size=${size:-150000000}
	small_store $((size * 2 + 100000000))
	cd "$mnt"
	ddbfs sweep . >/dev/null
	before=$(df -B1 --output=used "$disk" | tail -n 1)
	head -c $size /dev/urandom >big
	sync -f .
	[ "$(df -B1 --output=used "$disk" | tail -n 1)" -gt $((before + size / 10 * 9)) ]
	rm big
	ddbfs trash empty --now . >/dev/null
	returned() {
		ddbfs sweep "$mnt" >/dev/null
		[ "$(df -B1 --output=used "$disk" | tail -n 1)" -lt $((before + 20000000)) ]
	}
	within_seconds 30 returned
	gone_disk
}

df_tells_the_truth() {
	local free below

	small_store 300m
	cd "$mnt"
	free=$(df -B1 --output=avail . | tail -n 1)
	below=$(df -B1 --output=avail "$disk" | tail -n 1)
	within 1 "$below" "$free" 'bytes that df promises'
	# What df promises can be written, but for a few per cent.
	head -c $((free * 9 / 10)) /dev/zero | tr '\0' x >f
	equal $((free * 9 / 10)) "$(stat -c %s f)" 'bytes written'
	gone_disk
}

nothing_is_evicted_unasked() {
	small_store 200m
	cd "$mnt"
	mkdir t
	head -c 60000000 /dev/urandom >t/f
	cp t/f "$tmp/f"
	rm t/f
	fill d
	cmp t/.trash/f "$tmp/f"
	mv t/.trash/f t/f
	cmp t/f "$tmp/f"
	gone_disk
}

cap_evicts_the_oldest() {
	small_store 300m
	cd "$mnt"
	mkdir capped other
	setfattr -n user.ddbfs.trash_max -v 20M capped
	for ((i = 0; i < 6; i++)); do
		head -c 6000000 /dev/urandom >capped/f$i
		rm capped/f$i
		sleep 0.05
	done
	echo x >other/f && rm other/f
	evicted() { [ ! -e capped/.trash/f0 ] && [ ! -e capped/.trash/f1 ]; }
	within_seconds 15 evicted
	exists capped/.trash/f5
	exists capped/.trash/f4
	exists other/.trash/f
	gone_disk
}

it 'S1 a full store: rm, undo, restore and emptying work, then writing again' full_disk
it 'S3 what is deleted and purged is free on the disk below' space_comes_back
it 'df promises what can be written' df_tells_the_truth
it 'S2 without a rule nothing unexpired is destroyed on a full disk' nothing_is_evicted_unasked
it 'S2 a cap on a directory evicts its oldest entries' cap_evicts_the_oldest
done_testing

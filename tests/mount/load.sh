#!/usr/bin/env bash
#
# Many processes, many entries, and what must hold while they work.
# timeout: 3600
. "$(dirname "$0")/lib.sh"
# With DDBFS_LOAD_FULL the numbers that BEHAVIOURS.md gives: some minutes. Without, a tenth and a fifth of them.
tree=5000 opens=20000 many=20000
limit=180
[ -z "${DDBFS_LOAD_FULL:-}" ] || tree=50000 opens=100000 many=100000 limit=1200 ddbfs_limit=600

eight_removers() {
	local p

	gives ok make d $tree 10
	for p in 1 2 3 4 5 6 7 8; do
		rm -rf d 2>"$tmp/rm$p" &
	done
	wait
	absent d
	# The losers saw ENOENT (or found it not empty while others were at it), nothing else.
	cat "$tmp"/rm? >"$tmp/said"
	! grep -v -e 'No such file or directory' -e 'Directory not empty' "$tmp/said" || fail 'another error'
	equal $tree "$(count .trash/d -type f)" 'entries in the deleted tree'
	equal $tree "$(find .trash/d -type f | sort -u | wc -l)" 'different ones'
	mv .trash/d d
	equal $tree "$(count d -type f)" 'restored'
	content d/f$((tree - 1)) "$(printf %010d $((tree - 1)))"
}

replaced_while_opened() {
	# With the trash the old version stays; a reader sees one version or the other, never none.
	echo version >index
	gives 0 open-while-replaced index $opens
	rm -f index.new
	within 1 16 "$(find .trash -mindepth 1 ! -name 'index.new*' | wc -l)" 'old versions kept'
}

create_against_remove() {
	gives 0 remove-against-create d 1000
}

emptied_while_read() {
	gives ok make d $many 0
	gives $many read-and-unlink d 1000
	lists d
	equal $many "$(count d/.trash)" 'entries'
	rmdir d
}

listing_finds_what_stays() {
	local n

	gives ok make d 2000 0
	(while :; do
		touch d/.a d/.b
		rm d/.a
		mv d/.b d/.c
		rm d/.c
	done) >/dev/null 2>&1 &
	for ((n = 0; n < 15; n++)); do
		find d -name 'f*' -printf '%f\n' | sort >"$tmp/seen"
		equal 2000 "$(wc -l <"$tmp/seen")" 'files seen'
		equal 2000 "$(sort -u "$tmp/seen" | wc -l)" 'different files seen'
	done
	kill $!
}

# What the kernel knows and what is open, by the daemon's own count. Reading it is one of each.
nodes_and_handles() {
	awk '/^ddbfs_mount_(nodes|handles) / { print $2 }' "$mnt/.ddbfs/stats" | xargs
}

# What is left of them when nothing is used but the working directory: the least of some.
nodes_when_idle() {
	local i

	for i in {1..5}; do
		echo 2 >/proc/sys/vm/drop_caches
		sleep 0.05
		nodes_and_handles
	done | sort -n | head -n 1
}

# Until the kernel has forgotten all that nobody uses, they are what they were.
nothing_leaked() {
	forgotten() {
		echo 2 >/proc/sys/vm/drop_caches
		[ "$(nodes_and_handles)" = "$1" ]
	}
	within_seconds 20 forgotten "$1" || fail "nodes and handles: first $1, now $(nodes_and_handles)"
}

storm() {
	local p before

	cd "$mnt"
	before=$(nodes_when_idle)
	cd "$d"
	mkdir s
	for p in 1 2 3 4 5 6; do
		(
			RANDOM=$p
			for ((i = 0; i < 300; i++)); do
				a=s/n$((RANDOM % 20)) b=s/n$((RANDOM % 20))
				case $((RANDOM % 8)) in
				0 | 1) echo $i >$a ;;
				2) mv -f $a $b ;;
				3) ln -f $a $b ;;
				4) rm -f $a ;;
				5) mv -f s/.trash/"${a#s/}" $b ;;
				6) setfattr -n user.n -v $i $a ;;
				7) ls -l s s/.trash ;;
				esac
			done
		) >/dev/null 2>&1 &
	done
	wait
	ls -lR s >/dev/null
	find s -type f -exec cat {} + >/dev/null
	find s/.trash -type f -exec cat {} + >/dev/null
	cd "$mnt"
	nothing_leaked "$before"
	check_clean
}

stats_and_unmount() {
	local p

	gives ok make d 2000 10
	cd /
	for p in 1 2 3 4; do
		(while :; do find "$mnt" -type f -exec stat {} + ; done) >/dev/null 2>&1 &
	done
	sleep 1
	for p in $(jobs -p); do kill -9 "$p"; done
	wait 2>/dev/null || true
	within_seconds 15 mount_down
	mount_up
	equal 2000 "$(count "$d/d" -type f)" files
	# Nobody is left waiting in the kernel, of those that this is about.
	! ps -eo stat,wchan:32,args | grep -F "$tmp" | grep '^D.*fuse' || fail 'processes hang'
}

interrupted() {
	local p

	gives ok make d 200 100000
	for ((p = 0; p < 60; p++)); do
		cat d/* >/dev/null 2>&1 &
		sleep 0.01
		kill -9 $! 2>/dev/null || true # it may have read everything by now
	done
	wait 2>/dev/null || true
	equal 20000000 "$(cat d/* | wc -c)" bytes
}

# Look-ups, listings, openings and creations of a deep and of a wide tree, ended at any point.
interrupted_leaks_nothing() {
	local p before

	mkdir d
	cd "$mnt"
	before=$(nodes_when_idle)
	gives ok make "$d/d/wide" 3000 10
	gives 200 deep "$d/d" 200 make
	for ((p = 0; p < 40; p++)); do
		find "$d/d" -exec stat {} + >/dev/null 2>&1 &
		cat "$d"/d/wide/f1* >/dev/null 2>&1 &
		bash -c "for n in {1..50}; do echo \$n >$d/d/wide/new$p.\$n; rm $d/d/wide/new$p.\$n; done" 2>/dev/null &
		sleep 0.0$((p % 10))
		# shellcheck disable=SC2046
		kill -9 $(jobs -p) 2>/dev/null || true
		wait 2>/dev/null || true
		[ $((p % 10)) != 0 ] || echo 2 >/proc/sys/vm/drop_caches
	done
	ls -lR "$d/d/.trash" >/dev/null
	nothing_leaked "$before"
}

# The kernel moves a directory that it knows elsewhere only while nobody renames, and else answers ESTALE.
looked_at_while_renamed() {
	mkdir a b x y x/inner
	touch a/f x/inner/f
	rm x/inner/f
	gives 0 look-while-renamed 500
	(
		cd .trash/x/inner
		mv "$OLDPWD"/x/inner "$OLDPWD"/y
		lists . f # whoever stands in it goes on seeing it
		lists "$OLDPWD"/.trash/y/inner f
	)
}

memory_returns() {
	local pid before after

	pid=$(daemon_pid)
	gives ok make d 20000 0
	ls -lR d >/dev/null
	rm -rf d
	ddbfs trash empty --now . >/dev/null
	echo 2 >/proc/sys/vm/drop_caches
	sleep 1
	before=$(awk '/^RssAnon/ { print $2 }' "/proc/$pid/status")
	for _ in 1 2 3; do
		gives ok make d 20000 0
		ls -lR d >/dev/null
		rm -rf d
		ddbfs trash empty --now . >/dev/null
		echo 2 >/proc/sys/vm/drop_caches
		sleep 1
	done
	after=$(awk '/^RssAnon/ { print $2 }' "/proc/$pid/status")
	echo "resident, not counting mapped pages of the database: $before KiB, then $after KiB"
	[ "$after" -lt $((before + before / 2 + 20000)) ] || fail 'memory grows with work done'
}

many_entries_cost_nothing() {
	local without with

	mkdir few many
	gives ok make many 30000 0
	rm many/*
	gives ok make few 300 0
	gives ok make many 300 0
	timed() {
		local start
		start=$(date +%s%N)
		for _ in 1 2 3; do
			ls -l "$1" >/dev/null
			echo 2 >/proc/sys/vm/drop_caches
		done
		echo $((($(date +%s%N) - start) / 1000))
	}
	timed few >/dev/null
	without=$(timed few)
	with=$(timed many)
	echo "listing 300 files: $without us without, $with us with 30000 entries in the trash"
	[ "$with" -lt $((without * 3 + 50000)) ] || fail 'the dead cost the living'
	start=$(date +%s%N)
	{ find many/.trash -maxdepth 1 2>/dev/null || true; } | sed -n 10q
	within 0 1500 $((($(date +%s%N) - start) / 1000000)) 'ms until the first names of the trash'
}

mount_new
it 'L3 eight processes remove one tree: one entry a file, the losers see ENOENT' eight_removers
it 'X1 a file renamed over in a loop is never missing' replaced_while_opened
it 'L5 create in a directory that is removed: one of the two fails' create_against_remove
it 'X7 20,000 files removed while their directory is read in small pieces' emptied_while_read
it 'a listing under change shows what was there throughout, once' listing_finds_what_stays
it 'a storm of renames, links, removals and restores leaves a clean store' storm
it 'X11 unmounting works after a storm of parallel stats' stats_and_unmount
it 'X11 interrupted readers see whole files' interrupted
it 'X11 look-ups, listings and openings that are interrupted leave no node and no handle' interrupted_leaks_nothing
it 'directories in the trash are found wherever they move while others rename' looked_at_while_renamed
it 'memory comes back when what it was for is gone' memory_returns
it 'L2 thirty thousand entries in the trash cost the living nothing' many_entries_cost_nothing
it 'leaves a store that checks clean' check_clean
done_testing

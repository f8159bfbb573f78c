#!/usr/bin/env bash
#
# Clocks that jump, through a real mount: the daemon sees a wall clock and a boot
# clock that the test moves (clock.c).
# timeout: 300
. "$(dirname "$0")/lib.sh"

day=86400

# Back to the machine's own time, confirmed: each behaviour starts there.
settle() {
	clocks 0 0
	ddbfs clock accept "$mnt" >/dev/null
	ddbfs trash empty --now "$mnt" >/dev/null
}

stat_of() {
	sed -n "s/^ddbfs_$1 //p" "$mnt/.ddbfs/stats"
}

counter_of() {
	sed -n "s/^ddbfs_$1{cause=\"$2\"} //p" "$mnt/.ddbfs/stats"
}

fact() {
	getfattr --only-values -n "user.ddbfs.$1" "$2"
}

make_entries() {
	settle
	mkdir d
	setfattr -n user.ddbfs.retention -v 2d d
	mkdir d/tree
	echo content >d/f
	echo inside >d/tree/g
	apart rm -rf d/f d/tree
	lists d/.trash f tree
}

hidden_everywhere() {
	lists d/.trash
	gives ENOENT stat d/.trash/f
	gives ENOENT open d/.trash/f rdonly
	gives ENOENT stat d/.trash/tree/g
	gives ENOENT rename d/.trash/f d/f
	gives ENOENT rename d/.trash/tree d/tree
	exits 4 ddbfs trash restore "$d/d/f"
	refused ddbfs undo "$d/d"
	equal 0 "$(ddbfs trash list --json "$d/d" | grep -c '"name"')" 'entries that the tool lists'
	lists d
}

a_year_ahead() {
	local destroyed

	make_entries
	destroyed=$(counter_of destroyed_total expired)
	clocks $((365 * day)) 0
	hidden_everywhere
	# ... and nothing is destroyed, whoever asks.
	ddbfs sweep . >"$tmp/said"
	says 'the clock jumped'
	ddbfs sweep "$mnt" >/dev/null
	equal "$destroyed" "$(counter_of destroyed_total expired)" 'entries destroyed'
	equal 1 "$(stat_of clock_suspect)" 'clock_suspect in stats'
	ddbfs status "$mnt" >"$tmp/said"
	says 'the clock jumped by 36'
	says 'nothing is destroyed'
	# A remount, and a crash, believe it no more than before.
	cd /
	remount
	cd "$d"
	hidden_everywhere
	equal 1 "$(stat_of clock_suspect)" 'clock_suspect after a remount'
	cd /
	kill_daemon
	mount_up --replace-dead 2>/dev/null || { umount -l "$mnt"; mount_up; }
	cd "$d"
	equal 1 "$(stat_of clock_suspect)" 'clock_suspect after a crash'
	ddbfs sweep . >/dev/null
	# Set back: all of it is visible again, and new deletions carry the right time.
	clocks 0 0
	equal 0 "$(stat_of clock_suspect)" 'clock_suspect, set back'
	lists d/.trash f tree
	content d/.trash/f content
	content d/.trash/tree/g inside
	touch d/new
	rm d/new
	within $(($(date +%s) - 60)) $(($(date +%s) + 5)) "$(date -d "$(fact deleted_at d/.trash/new)" +%s)" 'time of a new deletion'
	mv d/.trash/tree d/tree
	mv d/.trash/f d/f
	content d/tree/g inside
	content d/f content
}

confirmed() {
	local before

	make_entries
	before=$(counter_of destroyed_total expired)
	clocks $((30 * day)) 0
	lists d/.trash
	ddbfs sweep . >/dev/null
	equal "$before" "$(counter_of destroyed_total expired)" 'destroyed before the jump was confirmed'
	ddbfs clock accept .
	equal 0 "$(stat_of clock_suspect)"
	ddbfs sweep . >/dev/null
	gone() { [ "$(counter_of destroyed_total expired)" = $((before + 3)) ]; }
	within_seconds 10 gone
	ddbfs status . >"$tmp/said"
	! grep -q jumped "$tmp/said" || fail 'status still speaks of a jump'
	# Back again: the clock is behind now. What is destroyed stays so, and nothing else goes.
	clocks 0 0
	lists d/.trash
}

steady_for_a_day() {
	local before

	make_entries
	before=$(counter_of destroyed_total expired)
	clocks $((30 * day)) 0
	lists d/.trash
	equal 1 "$(stat_of clock_suspect)"
	# 23 hours of running: not yet. A remount begins them anew.
	clocks $((30 * day + 23 * 3600)) $((23 * 3600))
	ddbfs sweep . >/dev/null
	equal "$before" "$(counter_of destroyed_total expired)" 'destroyed after 23 hours'
	equal 1 "$(stat_of clock_suspect)"
	clocks $((31 * day + 60)) $((day + 60))
	ddbfs sweep . >/dev/null
	equal 0 "$(stat_of clock_suspect)"
	gone() { [ "$(counter_of destroyed_total expired)" = $((before + 3)) ]; }
	within_seconds 10 gone
}

real_time_passes() {
	local before

	# Both clocks move on, as when a machine sleeps: that is believed at once.
	make_entries
	before=$(counter_of destroyed_total expired)
	clocks $((2 * day - 30)) $((2 * day - 30))
	lists d/.trash f tree
	clocks $((2 * day + 30)) $((2 * day + 30))
	equal 0 "$(stat_of clock_suspect)"
	lists d/.trash
	ddbfs sweep . >/dev/null
	gone() { [ "$(counter_of destroyed_total expired)" = $((before + 3)) ]; }
	within_seconds 10 gone
}

what_was_cached_expires() {
	# The kernel looked all of it up just before: it may not go by that a moment after.
	make_entries
	clocks $((2 * day - 20)) $((2 * day - 20))
	ls -lR d/.trash >/dev/null
	gives ok stat d/.trash/f
	gives ok stat d/.trash/tree/g
	content d/.trash/f content
	exec 7<d/.trash/f
	cd d/.trash
	clocks $((2 * day + 30)) $((2 * day + 30))
	lists .
	gives ENOENT stat f
	gives ENOENT open f rdonly
	gives ENOENT stat tree/g
	gives ENOENT rename tree ../tree
	exec 7<&-
	cd ../..
	lists d
}

a_day_back() {
	local first second

	settle
	mkdir d
	setfattr -n user.ddbfs.retention -v 10d d
	echo 1 >d/f && rm d/f
	first=$(date -d "$(fact expires_at d/.trash/f)" +%s)
	clocks -$day 0
	echo 2 >d/f && rm d/f
	# The new one is the newer: it bears the name, and the old one its time.
	content d/.trash/f 2
	equal 2 "$(ls d/.trash | wc -l)" entries
	content "d/.trash/$(cd d && older f)" 1
	[ "$(date -d "$(fact deleted_at d/.trash/f)" +%s%N)" -gt "$(date -d "$(fact deleted_at d/.trash/f@*)" +%s%N)" ]
	second=$(date -d "$(fact expires_at d/.trash/f)" +%s)
	within $first $((first + day)) "$second" 'expiry of what was deleted after the step back'
	equal "$first" "$(date -d "$(fact expires_at d/.trash/f@*)" +%s)" 'expiry of what was deleted before'
	# Nothing goes early; what is due by both clocks goes.
	clocks $((9 * day)) $((9 * day))
	ddbfs sweep . >/dev/null
	equal 2 "$(ls d/.trash | wc -l)" 'entries a day before they expire'
	clocks $((12 * day)) $((12 * day))
	lists d/.trash
}

in_1970() {
	local now seconds

	settle
	echo 0 >before && rm before
	now=$(date +%s)
	cd /
	mount_down
	clocks -$((now - 86400)) 0
	mount_up
	cd "$d"
	echo 1 >f
	rm f
	seconds=$(date -d "$(fact deleted_at .trash/f)" +%s)
	within $((now - 120)) $((now + 120)) "$seconds" 'a deletion while the clock says 1970'
	within $((now + 29 * day)) $((now + 31 * day)) "$(date -d "$(fact expires_at .trash/f)" +%s)" 'its expiry'
	ddbfs sweep . >/dev/null
	content .trash/f 1
	content .trash/before 0
	# Put right, all goes on as before.
	clocks 0 0
	equal 0 "$(stat_of clock_suspect)"
	content .trash/f 1
	ddbfs undo
	content f 1
}

times_survive() {
	local before ctime

	settle
	mkdir -p tree/sub
	echo 1 >tree/sub/f
	touch -a -d '2001-02-03 04:05:06.123456789' tree/sub/f
	touch -m -d '1969-12-31 23:59:58.987654321' tree/sub/f
	touch -d '2002-02-02 02:02:02.222222222' tree/sub
	touch -d '2003-03-03 03:03:03.333333333' tree
	times() { stat -c '%n %.9X %.9Y' tree tree/sub tree/sub/f; }
	before=$(times)
	ctime=$(stat -c %.9Z tree/sub/f)
	apart rm -rf tree
	equal "$(tail -n 1 <<<"$before" | cut -d' ' -f2-)" "$(stat -c '%.9X %.9Y' .trash/tree/sub/f)" 'times in the trash'
	mv .trash/tree tree
	equal "$(cut -d' ' -f1,3 <<<"$before")" "$(times | cut -d' ' -f1,3)" 'mtimes'
	equal "$(tail -n 1 <<<"$before")" "$(times | tail -n 1)" 'atime and mtime of the file'
	[ "$(stat -c %.9Z tree/sub/f)" != "$ctime" ] || fail 'ctime did not move'
	apart rm -rf tree
	ddbfs undo
	equal "$(cut -d' ' -f1,3 <<<"$before")" "$(times | cut -d' ' -f1,3)" 'mtimes after undo'
}

# As after rsync, which sets a directory's time back to what it was before a deletion: a name that comes back then is news.
name_that_comes_back_moves_a_time_set_back() {
	settle
	mkdir d
	touch d/f
	touch -d '2003-03-03 03:03:03' d
	apart rm d/f
	touch -d '2003-03-03 03:03:03' d
	mv d/.trash/f d/f
	[ "$(stat -c %Y d)" -gt "$(date -d 2020-01-01 +%s)" ] || fail "mtime of the directory: $(stat -c %y d)"
}

# C7: a tree is moved out while its time runs out and the sweeper comes for it.
restore_races_sweep() {
	local round ahead=0 back=0 gone=0

	settle
	mkdir d
	setfattr -n user.ddbfs.retention -v 30m d
	for ((round = 0; round < 40; round++)); do
		mkdir d/tree
		echo one >d/tree/a
		echo two >d/tree/b
		apart rm -rf d/tree
		clocks $((ahead + 1790)) $((ahead + 1790))
		exists d/.trash/tree/a
		(ddbfs sweep . >/dev/null; ddbfs sweep . >/dev/null) &
		("$sys" rename d/.trash/tree "d/back$round" >"$tmp/renamed") &
		ahead=$((ahead + 1801))
		clocks $ahead $ahead
		wait
		if [ "$(cat "$tmp/renamed")" = ok ]; then
			back=$((back + 1))
			equal 'one two' "$(cat d/back$round/a d/back$round/b | xargs)" "what came back in round $round"
			lists d/back$round a b
		else
			gone=$((gone + 1))
			equal ENOENT "$(cat "$tmp/renamed")" 'the answer of a restore that came late'
			absent d/back$round
		fi
		absent d/.trash/tree
	done
	echo "$back came back, $gone expired"
	clocks $((ahead + 7200)) $((ahead + 7200))
	ddbfs sweep . >/dev/null
	lists d/.trash
	equal $back "$(ls d | wc -l)" 'trees that came back'
}

retention_of() {
	mkdir "$1"
	setfattr -n user.ddbfs.retention -v "$1" "$1"
	echo 1 >"$1/f"
	rm "$1/f"
}

exact_to_the_end() {
	local deleted expires

	settle
	retention_of 0
	lists 0/.trash
	retention_of 1s
	retention_of 100y
	retention_of forever
	deleted=$(date -d "$(fact deleted_at 100y/.trash/f)" +%s)
	expires=$(date -d "$(fact expires_at 100y/.trash/f)" +%s)
	equal $((100 * 365 * day)) $((expires - deleted)) '100 years in seconds'
	clocks 2 2
	lists 1s/.trash
	# Just before, and just after.
	clocks $((100 * 365 * day - 60)) $((100 * 365 * day - 60))
	content 100y/.trash/f 1
	clocks $((100 * 365 * day + 60)) $((100 * 365 * day + 60))
	lists 100y/.trash
	content forever/.trash/f 1
	ddbfs sweep . >/dev/null
	content forever/.trash/f 1
	gives EINVAL setxattr forever user.ddbfs.retention 9223372036854775807
	gives EINVAL setxattr forever user.ddbfs.retention 1796055939000
}

use_clock
mount_new
it 'T1 a year ahead: hidden everywhere, nothing destroyed, status and stats say why; set back, all is there' a_year_ahead
it 'T1 a jump that is confirmed is believed' confirmed
it 'T1 a jump that lasts a day of running is believed' steady_for_a_day
it 'T1 time that both clocks saw go by is believed at once' real_time_passes
it 'expiry counts for what the kernel has looked up before' what_was_cached_expires
it 'T2 a day back: new deletions are the newer ones, nothing goes early, no expiry grows by more' a_day_back
it 'T3 a clock that says 1970: deletions have the store'\''s time' in_1970
it 'T4 atime and mtime survive to the nanosecond, a tree'\''s directories too' times_survive
it 'T4 what comes back moves the time of its directory, also one that was set back' name_that_comes_back_moves_a_time_set_back
it 'T6 retention of 0, 1 s, 100 years and for ever is exact' exact_to_the_end
clocks 0 0
it 'leaves a store that checks clean' check_clean
# The first store's own clock is a hundred years ahead by now.
mount_down
mount_new
it 'C7 restore and sweep race at the expiry instant: each tree is back or gone, whole' restore_races_sweep
clocks 0 0
it 'leaves a store that checks clean, after the races too' check_clean
done_testing

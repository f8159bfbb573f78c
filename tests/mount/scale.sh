#!/usr/bin/env bash
#
# Many entries in one directory's trash: what the living pay for them is counted
# in reads of the store, not in time.
#
#   DDBFS_SCALE_ENTRIES=1000000 DDBFS_TEST_TMP=/var/tmp DDBFS=... DDBFS_TESTS_BUILD=... tests/mount/scale.sh
#
# is the long form; CI has 5,000. What is measured beside goes to standard
# output as comments.
# timeout: 420
. "$(dirname "$0")/lib.sh"

entries=${DDBFS_SCALE_ENTRIES:-5000}
limit=$((240 + entries / 100))
ddbfs_limit=$limit
day=86400

tell() {
	echo "$*" >>"$tmp/told"
}

stat_of() {
	sed -n "s/^ddbfs_$1 //p" "$mnt/.ddbfs/stats"
}

counter_of() {
	sed -n "s/^ddbfs_$1{cause=\"$2\"} //p" "$mnt/.ddbfs/stats"
}

# Gets, queries, and the rows that these returned.
reads_so_far() {
	awk '/^ddbfs_store_(gets|queries|rows)_total / { n += $2 } END { print n }' "$mnt/.ddbfs/stats"
}

# How many one count of them takes itself: the least of ten, as the daemon looks after its own things now and then.
reads_of_counting() {
	local own=1000000 before after try

	if [ ! -e "$tmp/own" ]; then
		before=$(reads_so_far)
		for try in {1..10}; do
			after=$(reads_so_far)
			[ $((after - before)) -ge "$own" ] || own=$((after - before))
			before=$after
		done
		echo "$own" >"$tmp/own"
	fi
	cat "$tmp/own"
}

# reads COMMAND...: how many it takes, without those of counting.
reads() {
	local before own

	own=$(reads_of_counting)
	before=$(reads_so_far)
	"$@" >/dev/null || return 1
	echo $(($(reads_so_far) - before - own))
}

milliseconds() {
	local start=${EPOCHREALTIME/./}

	"$@" >/dev/null
	echo $(((${EPOCHREALTIME/./} - start) / 1000))
}

# What the daemon has allocated: pages of the index that it reads are the kernel's to drop.
resident() {
	awk '/^RssAnon/ { print $2 }' "/proc/$(daemon_pid)/status"
}

forget() {
	echo 2 >/proc/sys/vm/drop_caches
}

# The least of five times.
least_reads() {
	local least=1000000 n try

	for try in 1 2 3 4 5; do
		forget
		n=$(reads "$1" "$2" $try) || return 1
		[ "$n" -ge "$least" ] || least=$n
	done
	echo "$least"
}

# The same in a directory without and in one with many entries: the same number of reads.
as_without() {
	local name=$1 without with

	without=$(least_reads "$2" few)
	with=$(least_reads "$2" many)
	tell "$name: $without reads without, $with with $entries entries"
	equal "$without" "$with" "reads of $name"
	[ "$without" -gt 0 ] || fail "$name was not counted"
}

# What can be done but once: give or take what the daemon does for itself. A cost by the entry would be thousands.
once_as_without() {
	local name=$1 without with

	without=$(reads "$2" few)
	with=$(reads "$2" many)
	tell "$name: $without reads without, $with with $entries entries"
	within 1 $((without + 100)) "$with" "reads of $name"
}

look_up() { "$sys" stat "$1/live3"; }
look_up_nothing() { "$sys" stat "$1/nothing$RANDOM$RANDOM"; }
create_one() { "$sys" write "$1/created$2" 0 x; }
unlink_one() { "$sys" unlink "$1/created$2"; }
rename_one() { "$sys" rename "$1/live1" "$1/live1b" && "$sys" rename "$1/live1b" "$1/live1"; }
list_all() { ls -f "$1"; }
list_long() { ls -l "$1"; }
remove_all() { rm "$1"/live*; }
remove_directory() { "$sys" rmdir "$1"; }

every_operation() {
	as_without look-up look_up
	as_without 'look-up of nothing' look_up_nothing
	as_without create create_one
	as_without unlink unlink_one
	as_without rename rename_one
	as_without readdir list_all
	as_without 'ls -l' list_long
}

# To its final place with all of it: until the next checkpoint a listing passes over the names just removed in memory.
settled() {
	cd /
	remount
	cd "$mnt"
}

filled() {
	local d i

	cd "$mnt"
	mkdir many few
	setfattr -n user.ddbfs.retention -v 10d many
	setfattr -n user.ddbfs.retention -v 10d few
	tell "made $entries files in $(milliseconds "$sys" make many "$entries" 0) ms"
	tell "removed them in $(milliseconds find many -type f -delete) ms"
	settled
	for d in many few; do
		for i in 1 2 3 4 5 6 7 8; do echo $i >$d/live$i; done
		# What a directory's first deletion does once is done.
		echo 1 >$d/first
		rm $d/first
	done
	within $entries $((entries + 10)) "$(stat_of trash_items)" 'entries'
}

costs_the_living_nothing() {
	cd "$mnt"
	every_operation
}

# L2
first_screen() {
	local ms before after

	cd "$mnt"
	forget
	before=$(resident)
	ms=$({ milliseconds bash -c 'ls -f many/.trash | head -n 50'; } 2>/dev/null)
	tell "first 50 names of .trash after $ms ms"
	within 0 1000 "$ms" 'ms until the first screen of ls -f'
	ms=$(milliseconds bash -c "ls -f many/.trash | wc -l >'$tmp/count'")
	after=$(resident)
	tell "all names after $ms ms; daemon resident $before KiB before, $after KiB after"
	within "$((entries + 1))" "$((entries + 6))" "$(cat "$tmp/count")" 'names listed'
	ms=$({ milliseconds bash -c "'$DDBFS' trash list --limit 20 many"; } 2>/dev/null)
	tell "trash list --limit 20: $ms ms"
	if ! ldd "$DDBFS" | grep -q libasan; then
		[ $((after - before)) -lt 65536 ] || fail "listing took $((after - before)) KiB of memory"
	fi
}

# L1: expired, and not to be destroyed yet, since the clock that says so is in doubt.
expired_ones_cost_nothing() {
	cd "$mnt"
	clocks $((30 * day)) 0
	equal 0 "$(ls -A many/.trash | wc -l)" 'names shown of what expired'
	equal 1 "$(stat_of clock_suspect)"
	for n in many few; do echo x >$n/again; rm $n/again; done
	every_operation
}

# pace COUNT NAME: creations, listings and removals of another user, into $tmp/NAME: what, longest, middle, of one in 100, in us.
pace() {
	"$sys" pace beside "$1" >"$tmp/$2"
}

tell_pace() {
	local what longest middle hundredth

	while read -r what longest middle hundredth; do
		tell "$1: $what: longest $longest us, middle $middle us, one in 100 over $hundredth us"
	done <"$tmp/$2"
}

# How often the daemon's thread NAME has waited for something.
naps_of() {
	local t

	for t in "/proc/$(daemon_pid)/task"/*; do
		[ "$(cat "$t/comm")" != "$1" ] || sed -n 's/^voluntary_ctxt_switches:\t//p' "$t/status"
	done
}

# While they are destroyed: nobody waits for the whole. Steps are counted; what is timed is told.
sweeper_holds_nobody_up() {
	local before steps waits what longest middle hundredth quiet naps long

	cd "$mnt"
	mkdir beside
	setfattr -n user.ddbfs.temporary -v 0 beside
	pace $((200 + entries / 100)) quiet
	before=$(counter_of destroyed_total expired)
	steps=$(stat_of background_steps_total)
	waits=$(stat_of store_waits_total)
	long=$(stat_of background_long_steps_total)
	naps=$(naps_of notify)
	pace $((1000 + entries / 20)) busy &
	sleep 0.1
	ddbfs clock accept . >/dev/null
	ddbfs sweep . >/dev/null
	wait
	tell_pace 'without sweeping' quiet
	tell_pace 'while swept' busy
	all_gone() { [ "$(counter_of destroyed_total expired)" -ge $((before + entries)) ]; }
	within_seconds $((60 + entries / 1000)) all_gone
	steps=$(($(stat_of background_steps_total) - steps))
	tell "swept in $steps steps, of which the longest held others up for $(stat_of background_longest_hold_microseconds) us, $(stat_of background_longest_own_hold_microseconds) without waiting for a processor"
	tell "$(($(stat_of store_waits_total) - waits)) changes waited for a checkpoint"
	# Of 16 entries at the most.
	within $((entries / 16)) $((entries * 4 + 1000)) "$steps" 'steps'
	# By their own doing none is longer than 10 ms. What a step waits for may itself wait for a processor, now and then.
	long=$(($(stat_of background_long_steps_total) - long))
	tell "$long of them took more than 10 ms of their own"
	ldd "$DDBFS" | grep -q libasan || within 0 $((steps / 500 + 1)) "$long" 'steps of more than 10 ms'
	# The kernel knows none of the entries: the thread that tells it is not woken for them.
	naps=$(($(naps_of notify) - naps))
	tell "the notifier was woken $naps times"
	within 0 $((entries / 20 + 20)) "$naps" 'times that the notifier was woken'
	read -r what longest quiet hundredth < <(grep create "$tmp/quiet")
	read -r what longest middle hundredth < <(grep create "$tmp/busy")
	# In time: generous, for a machine that does other things. What it is on a quiet one is told.
	within 0 1000000 "$longest" 'us that one call took at most'
	within 0 $((quiet * 20 + 10000)) "$middle" 'us that the middle one took'
	clocks 0 0
}

# The target of emptying is fixed at its start.
emptying_has_a_fixed_target() {
	local n=0 ms

	cd "$mnt"
	mkdir full
	"$sys" make full "$entries" 0 >/dev/null
	find full -type f -delete
	mkdir late
	(while [ ! -e "$tmp/stop" ]; do
		n=$((n + 1))
		echo $n >late/f$n
		rm late/f$n
		sleep 0.05
	done) &
	sleep 0.3
	ls late/.trash | sort >"$tmp/before"
	ms=$(milliseconds ddbfs trash empty --now "$mnt")
	touch "$tmp/stop"
	wait
	tell "emptied $entries entries in $ms ms; $(ls late/.trash | wc -l) deleted meanwhile are still there"
	equal '' "$(ls full/.trash)" 'entries left of what was to go'
	equal '' "$(ls late/.trash | sort | comm -12 - "$tmp/before")" 'entries from before that are left'
	[ -n "$(ls late/.trash)" ] || fail 'what was deleted meanwhile was destroyed'
}

rmdir_of_an_emptied_directory() {
	cd "$mnt"
	clocks 0 0
	mkdir empty1 empty2
	rm -rf few many
	mkdir few many
	"$sys" make many "$entries" 0 >/dev/null
	find many -type f -delete
	settled
	for n in many few; do
		for i in 1 2 3; do echo x >$n/live$i; done
		rm $n/live1
	done
	once_as_without 'removing what is left' remove_all
	once_as_without rmdir remove_directory
	absent many
	# All of it is one entry now, and comes back as it was.
	equal $((entries + 3)) "$(find .trash/many -type f | wc -l)" 'entries in the removed directory'
}

chain() { # NAME LEVELS: by relative steps
	local n

	mkdir "$mnt/$1" && cd "$mnt/$1" || return
	for ((n = 1; n < $2; n++)); do
		echo x >f && mkdir d && cd d || return
	done
	cd "$mnt" || return
}

# by_the_level WHAT COMMAND...: {} stands for a tree of few levels, then one of many; a walk to the root at each step would read with their square.
by_the_level() {
	local what=$1 few many

	shift
	forget
	few=$(reads "${@//\{\}/shallow}")
	forget
	many=$(reads "${@//\{\}/deep}")
	tell "$what: $few reads with 40 levels, $many with 240"
	within 1 $((few * 9)) "$many" "reads of $what"
}

depth_costs_by_the_level() {
	local d

	cd "$mnt"
	clocks 0 0
	for d in shallow:40 deep:240; do
		chain "${d%:*}" "${d#*:}"
	done
	by_the_level 'removal' rm -rf {}
	by_the_level 'find in .trash' find .trash/{}
	by_the_level 'du in .trash' du -s .trash/{}
	by_the_level 'removal from .trash' rm -rf .trash/{}
	ddbfs trash empty --now . >/dev/null
	for d in shallow:40 deep:240; do
		chain "${d%:*}" "${d#*:}"
	done
	by_the_level 'mv into .trash' mv {} .trash/
	by_the_level 'find in what was moved there' find .trash/{}
	by_the_level 'its removal' rm -rf .trash/{}
	ddbfs trash empty --now . >/dev/null
	for d in shallow:40 deep:240; do
		chain "${d%:*}" "${d#*:}"
		find "${d%:*}" -type f -delete
	done
	by_the_level 'find in live directories shown in .trash' find .trash/{}
	rm -rf shallow deep
}

use_clock
mount_new
it 'a trash of many entries is made' filled
it "L3 look-up, create, unlink, rename and readdir read no more than without $entries entries" costs_the_living_nothing
it "L2 the first screen of $entries entries comes at once, and memory stays flat" first_screen
it "L1 $entries expired entries cost an rm and an ls no read more" expired_ones_cost_nothing
it 'L1 the sweeper holds nobody up' sweeper_holds_nobody_up
it 'emptying takes what there was at its start' emptying_has_a_fixed_target
it 'L3 the rmdir of an emptied directory reads no more for what was deleted in it' rmdir_of_an_emptied_directory
it 'a walk through a deep tree in the trash costs by the level' depth_costs_by_the_level
it 'leaves a store that checks clean' check_clean
sed 's/^/# /' "$tmp/told"
done_testing

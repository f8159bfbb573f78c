#!/usr/bin/env bash
#
# How long what was deleted stays: policies by directory, expiry, the sweeper.
# timeout: 600
. "$(dirname "$0")/lib.sh"

policy() {
	setfattr -n "user.ddbfs.$1" -v "$2" "$3"
}

two_seconds_and_an_hour() {
	local used0 used1 i

	mkdir short long
	policy retention 2s short
	policy retention 1h long
	for i in 1 2 3 4; do head -c 8000000 /dev/urandom | tee short/f$i >long/f$i; done
	sync -f .
	used0=$(du -s -B1 "$store" | cut -f1)
	rm short/f? long/f?
	lists short/.trash f1 f2 f3 f4
	sleep 2.2
	# At once, whether or not the sweeper has been there.
	lists short/.trash
	absent short/.trash/f1
	exits 4 ddbfs trash restore short/f1
	lists long/.trash f1 f2 f3 f4
	# Destroyed: the space is back on the disk below.
	ddbfs sweep . >/dev/null
	smaller() { [ "$(du -s -B1 "$store" | cut -f1)" -lt $((used0 - 20000000)) ]; }
	within_seconds 20 smaller
	used1=$(du -s -B1 "$store" | cut -f1)
	echo "from $used0 to $used1 bytes"
	mv long/.trash/f1 .
	equal 8000000 "$(stat -c %s f1)"
}

sweeper_by_itself() {
	mkdir short
	policy retention 1s short
	# Much more than what the engine allocates ahead of its writes.
	head -c 60000000 /dev/urandom >short/f
	sync -f .
	used0=$(du -s -B1 "$store" | cut -f1)
	rm short/f
	gone() { [ "$(du -s -B1 "$store" | cut -f1)" -lt $((used0 - 40000000)) ]; }
	within_seconds 40 gone
}

inherited() {
	mkdir -p a/b/c
	policy retention 1h a
	policy retention 1s a/b/c
	touch a/b/f a/b/c/g
	rm a/b/f a/b/c/g
	sleep 1.2
	lists a/b/.trash f
	lists a/b/c/.trash
	equal 1h "$("$sys" getxattr a user.ddbfs.retention)"
	gives ENODATA getxattr a/b user.ddbfs.retention
	equal '' "$("$sys" listxattr a)" 'policies are named by no list'
	ddbfs policy show a/b >"$tmp/said"
	says retention
	gives ok removexattr a/b/c user.ddbfs.retention
	touch a/b/c/h && rm a/b/c/h
	sleep 1.2
	lists a/b/c/.trash h
}

zero_keeps_nothing() {
	mkdir d
	policy retention 0 d
	echo 1 >d/f
	rm d/f
	lists d/.trash
	exits 4 ddbfs trash restore d/f
}

expiry_facts() {
	local deleted expires

	mkdir d e
	policy retention 3h d
	policy retention forever e
	touch d/f e/f && rm d/f e/f
	deleted=$(date -d "$(getfattr --only-values -n user.ddbfs.deleted_at d/.trash/f)" +%s)
	expires=$(date -d "$(getfattr --only-values -n user.ddbfs.expires_at d/.trash/f)" +%s)
	equal 10800 $((expires - deleted)) 'seconds between deletion and expiry'
	within $(($(date +%s) - 20)) $(($(date +%s) + 1)) "$deleted" 'time of deletion'
	getfattr --only-values -n user.ddbfs.expires_at e/.trash/f >"$tmp/said"
	! grep -q 20 "$tmp/said" || fail "an entry kept for ever expires $(cat "$tmp/said")"
}

values_are_exact_or_refused() {
	local v

	mkdir d
	for v in 0 1s 100y forever 90s 15m 12h 30d 4w; do
		gives ok setxattr d user.ddbfs.retention $v
		gives $v getxattr d user.ddbfs.retention
	done
	gives ok setxattr d user.ddbfs.retention 1d
	for v in 9223372036854775807 1796055939000 -1 1x '' 1.5h '30 d' abc 99999999999999999999; do
		gives EINVAL setxattr d user.ddbfs.retention "$v"
		gives 1d getxattr d user.ddbfs.retention
	done
	exits 2 ddbfs policy set d retention=1796055939000
	says milliseconds
	exits 2 ddbfs policy set d retention=soon
	says 30d
	exits 2 ddbfs policy set d retension=1d
	says retention
	touch f
	gives EINVAL setxattr f user.ddbfs.retention 1d
	gives EINVAL setxattr d user.ddbfs.nonsense 1
	gives EINVAL setxattr d user.ddbfs.protect maybe
	gives EINVAL setxattr d user.ddbfs.versions -3
	gives EINVAL setxattr d user.ddbfs.trash_max 10x
	chmod 777 d
	equal EPERM "$(as $bob "$sys" setxattr d user.ddbfs.retention 0)"
	chown $bob d
	equal ok "$(as $bob "$sys" setxattr d user.ddbfs.retention 1h)"
	[ "$(as $bob "$sys" setxattr d trusted.ddbfs.retention 1h)" = EPERM ]
}

shortening_spares_old_ones() {
	mkdir d
	policy retention 24h d
	touch d/old && rm d/old
	policy retention 1s d
	touch d/new && rm d/new
	sleep 1.2
	lists d/.trash old
}

applied_to_old_ones() {
	mkdir -p d/tree d/held
	head -c 3000 /dev/zero >d/old
	touch d/tree/f d/held/f
	ddbfs policy set d/held hold=yes
	rm d/old d/held/f
	apart rm -r d/tree
	sleep 1.2
	ddbfs policy set d retention=1s --apply-existing --dry-run >"$tmp/said" || equal 3 $?
	says 'would change 2 of 3'
	says '2.9 KiB'
	gives ENODATA getxattr d user.ddbfs.retention
	lists d/.trash held old tree
	exits 3 ddbfs policy set d retention=1s --apply-existing --json
	jq -es '.[0].gone == 2 and .[0].refused == 1' <(grep '^{' "$tmp/said")
	lists d/.trash held
	lists d/held/.trash f
	# Longer: only what has not expired.
	ddbfs policy set d/held hold=no
	ddbfs policy set d retention=5y
	ddbfs policy set d --apply-existing >"$tmp/said"
	says 'changed 1 of 1'
	says '1 later'
	within $(($(date +%Y) + 4)) 9999 "$(getfattr --only-values -n user.ddbfs.expires_at d/held/.trash/f | cut -d- -f1)" 'year'
	exits 2 ddbfs policy set d
	exits 2 ddbfs policy set d retention=1d --dry-run
	chmod 777 d
	exits 1 as $bob "$DDBFS" policy set d --apply-existing
	# Root's minimum is never undercut.
	ddbfs policy set d trusted.ddbfs.retention=2y
	ddbfs policy set d retention=0 --apply-existing >"$tmp/said"
	says '1 sooner'
	exists d/held/.trash/f
	# ... and is what is shown as set, where it decides.
	ddbfs policy show d >"$tmp/said"
	grep -q '^retention *2 y *2y ' "$tmp/said" || fail "$(cat "$tmp/said")"
	ddbfs policy set d retention=3y
	ddbfs policy show d >"$tmp/said"
	grep -q '^retention *3 y *3y ' "$tmp/said" || fail "$(cat "$tmp/said")"
}

protect_and_hold() {
	mkdir p h
	echo 1 >p/f && mkdir p/sub
	policy protect yes p
	gives EPERM unlink p/f
	gives EPERM rmdir p/sub
	echo 2 >g
	gives EPERM rename g p/f
	gives EPERM rename p/f out
	content p/f 1
	gives ok rename p/f p/inside
	policy protect no p
	gives ok unlink p/inside
	policy hold yes h
	policy retention 1s h
	echo 1 >h/f && rm h/f
	gives EPERM unlink h/.trash/f
	policy hold no h
}

versions_are_bounded() {
	local i

	mkdir d
	policy versions 4 d
	for ((i = 0; i < 500; i++)); do
		echo "$i" >d/.new
		"$sys" rename d/.new d/f >/dev/null
	done
	content d/f 499
	equal 4 "$(ls d/.trash | wc -l)" versions
	content d/.trash/f 498
	equal '495 496 497 498' "$(sort -n d/.trash/* | xargs)" 'the newest are kept'
	# Where nobody says how many: 16.
	mkdir usual
	for ((i = 0; i < 30; i++)); do
		echo "$i" >usual/.new
		"$sys" rename usual/.new usual/f >/dev/null
	done
	equal "$(seq -s ' ' 13 28)" "$(sort -n usual/.trash/* | xargs)" 'the newest are kept'
}

what_became_of_it() {
	mkdir -m 777 pub
	mkdir d
	ddbfs policy set d retention=1s
	echo 1 >d/short && rm d/short
	echo 2 >d/emptied
	as $alice bash -c 'echo 3 >pub/hers'
	rm pub/hers
	# A link to hers where only root may look.
	mkdir -m 700 shut
	as $alice bash -c 'echo 4 >pub/linked'
	ln pub/linked shut/private
	rm shut/private
	ddbfs trash empty --now shut >/dev/null
	ddbfs policy set pub trash_max_entries=1
	sleep 1.2
	ddbfs sweep . >/dev/null
	rm d/emptied
	ddbfs trash empty --now d >/dev/null
	touch pub/x && apart rm pub/x
	gone() { ddbfs trash history "$d" | grep -q hers; }
	within_seconds 15 gone
	ddbfs trash history "$d" >"$tmp/said"
	says DESTROYED
	equal 1 "$(grep -c "expired .* root *rm .*$d/d/short" "$tmp/said")" 'the one that expired'
	equal 1 "$(grep -c "user .* $d/d/emptied" "$tmp/said")" 'the one that was emptied'
	equal 1 "$(grep -c "evicted .* $d/pub/hers" "$tmp/said")" 'the one that was evicted'
	# By its path, also when its directory is gone; filtered; as JSON.
	rmdir d
	ddbfs trash history --json "$d/d/short" >"$tmp/said"
	jq -es 'length == 1 and .[0].why == "expired" and .[0].size == 2 and .[0].command == "rm"' "$tmp/said"
	equal 2 "$(ddbfs trash history --json --under "$d" --name '*e*' --limit 2 | jq -s length)" 'filtered'
	equal 0 "$(ddbfs trash history --json --by $bob "$d" | wc -l)" 'by nobody'
	# P4: of what was hers she is told, of the others not.
	as $alice "$DDBFS" trash history --json "$mnt" >"$tmp/said"
	jq -es 'length == 1 and .[0].why == "evicted" and .[0].uid == 0' "$tmp/said"
	equal 0 "$(as $bob "$DDBFS" trash history --json "$mnt" | wc -l)" "told to somebody else"
}

directory_waits_for_its_contents() {
	# What went with a directory is due with it, not before: it is never shown with holes.
	mkdir -p d/sub
	policy retention 1h .
	policy retention 1s d/sub
	echo 1 >d/sub/f
	echo 2 >d/g
	rm -rf d
	sleep 1.3
	content .trash/d/sub/f 1
	ddbfs sweep . >/dev/null
	mv .trash/d d
	content d/sub/f 1
	content d/g 2
	gives ok removexattr . user.ddbfs.retention
}

survives_remounts() {
	mkdir d
	policy retention 4s d
	echo 1 >d/f && rm d/f
	cd /
	remount -o allow_other
	cd "$d"
	content d/.trash/f 1
	sleep 4
	lists d/.trash
	cd /
	remount -o allow_other
	cd "$d"
	lists d/.trash
}

mount_new -o allow_other
chmod 755 "$mnt"
it 'retention of 2 s and 1 h: what expires is invisible at once and its space returned' two_seconds_and_an_hour
it 'the sweeper destroys what is due by itself' sweeper_by_itself
it 'the nearest ancestor decides, and lists do not show policies' inherited
it 'retention 0 keeps nothing' zero_keeps_nothing
it 'an entry tells its expiry, deletion plus retention' expiry_facts
it 'T6 retention values are exact, or refused with a hint' values_are_exact_or_refused
it 'T5 a shorter retention counts for new deletions only' shortening_spares_old_ones
it 'T5 --apply-existing makes old ones follow: dry run, hold, minimum, rights' applied_to_old_ones
it 'protect and hold refuse what they promise to' protect_and_hold
it 'F1 replaced versions of one name are bounded' versions_are_bounded
it 'S2 P4 what was destroyed is told with its cause, to whom it concerns' what_became_of_it
it 'a directory expires as a whole' directory_waits_for_its_contents
it 'expiry goes on across remounts' survives_remounts
it 'leaves a store that checks clean' check_clean
done_testing

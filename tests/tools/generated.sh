#!/usr/bin/env bash
#
# What the program writes from its tables: the manual is complete, completions
# are shell and complete.
set -u
ddbfs=$1
manual=$2
number=0
failures=0

ok() {
	number=$((number + 1))
	if "${@:2}" >/dev/null 2>&1; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		failures=$((failures + 1))
	fi
}

verbs() {
	"$ddbfs" help | sed -n '/^Verbs/,/^$/s/^  \([a-z][a-z]*\( [a-z][a-z]*\)*\).*/\1/p'
}

every_verb_is_in_the_manual() {
	local verb count=0

	while read -r verb; do
		"$ddbfs" generate man | grep -q "^## ddbfs $verb" || return 1
		count=$((count + 1))
	done < <(verbs)
	[ $count -ge 15 ]
}

every_verb_has_help() {
	local verb

	while read -r verb; do
		# shellcheck disable=SC2086
		"$ddbfs" $verb --help | grep -q "^usage: ddbfs $verb" || return 1
		# shellcheck disable=SC2086
		[ "$("$ddbfs" $verb --help)" = "$("$ddbfs" help $verb)" ] || return 1
	done < <(verbs)
}

manual_is_scdoc() {
	command -v scdoc || return 0
	{
		cat "$manual/ddbfs.1.head.scd"
		"$ddbfs" generate man
		cat "$manual/ddbfs.1.tail.scd"
	} | scdoc
	scdoc <"$manual/mount.ddbfs.8.scd"
}

# completes EXPECTED WORD...: of the last word
completes() {
	local expected=$1
	shift

	bash -c 'compopt() { :; }
		source <("$1" generate bash)
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_ddbfs
		echo "${COMPREPLY[*]}"' - "$ddbfs" "$@" | grep -qx -- "$expected"
}

completes_blanks() {
	local directory status

	directory=$(mktemp -d) || return 1
	mkdir "$directory/two words" && touch "$directory/two words/*"
	bash -c 'compopt() { :; }
		source <("$1" generate bash)
		cd "$2" || exit
		for words in "ddbfs init two" "ddbfs trash restore --to two"; do
			COMP_WORDS=($words) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
			_ddbfs
			[ ${#COMPREPLY[@]} = 1 ] && [ "${COMPREPLY[0]}" = "two words" ] || exit 1
		done
		COMP_WORDS=(ddbfs init "two words/") COMP_CWORD=2
		_ddbfs
		[ "${COMPREPLY[*]}" = "two words/*" ]' - "$ddbfs" "$directory"
	status=$?
	rm -rf "$directory"
	return $status
}

# Only where fish is installed; that conditions go by place is seen without.
fish_completes() {
	local script

	"$ddbfs" generate fish | grep -q "^complete.*-n '__ddbfs_verb undo' .*-l dry-run" || return 1
	! "$ddbfs" generate fish | grep -q __fish_seen_subcommand_from || return 1
	command -v fish || return 0
	script=$(mktemp) && "$ddbfs" generate fish >"$script"
	[ -z "$(fish -c "source $script; complete -C'ddbfs help undo --'")" ] &&
		[ "$(fish -c "source $script; complete -C'ddbfs trash restore --repl'" | cut -f1)" = --replace ] &&
		[ "$(fish -c "source $script; complete -C'ddbfs help und'" | cut -f1)" = undo ]
	set -- $?
	rm -f "$script"
	return "$1"
}

ok 'every verb is in the manual' every_verb_is_in_the_manual
ok 'every verb has help, by --help and by help' every_verb_has_help
ok 'the manual is scdoc' manual_is_scdoc
ok 'verbs complete' completes 'umount undo' ddbfs u
ok 'second words complete' completes 'restore' ddbfs trash r
ok 'options complete' completes '--rename --replace' ddbfs trash restore --re
ok 'values complete' completes 'ordered' ddbfs init --names o
ok 'the hidden verb stays hidden' completes '' ddbfs gen
ok 'the verbs of help complete' completes 'umount undo' ddbfs help u
ok 'a name with blanks is one word' completes_blanks
ok 'fish offers the options of the verb, and none after help' fish_completes
echo "1..$number"
exit $((failures > 0))

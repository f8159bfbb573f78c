# report.awk - the figures of compare.sh ("ROUND PEER NAME=VALUE" a line) as a
# table in Markdown: each peer's median, the ratio of ddbfs to each other peer
# (the median of ratios within one round), and the goals that came with them.
#
#   awk -v peers='disk hp ddbfs' -v goals=tests/bench/goals -f report.awk FIGURES

function median(list,    values, count, i, j, t) {
	count = split(list, values, " ")
	for (i = 2; i <= count; i++)
		for (j = i; j > 1 && values[j] + 0 < values[j - 1] + 0; j--) {
			t = values[j]; values[j] = values[j - 1]; values[j - 1] = t
		}
	return count % 2 ? values[(count + 1) / 2] : (values[count / 2] + values[count / 2 + 1]) / 2
}

function figure(p, name,    list, r) {
	for (r = 1; r <= rounds; r++)
		if ((r, p, name) in value)
			list = list " " value[r, p, name]
	return list == "" ? "" : median(list)
}

function ratio(of, to, name,    list, r) {
	for (r = 1; r <= rounds; r++)
		if ((r, of, name) in value && (r, to, name) in value && value[r, to, name] + 0 > 0)
			list = list " " value[r, of, name] / value[r, to, name]
	return list == "" ? "" : median(list)
}

function cell(x, format) {
	printf x == "" ? " - |" : format, x
}

# One goal as "hp <= 0.40: met", counted; "" when a peer was not measured.
function judge(goal, name,    of, to, op, bound, seen, met) {
	of = "ddbfs"
	if (sub(/^writeback:/, "", goal))
		of = "ddbfs-writeback"
	match(goal, /[<>]=?/)
	to = substr(goal, 1, RSTART - 1)
	op = substr(goal, RSTART, RLENGTH)
	bound = substr(goal, RSTART + RLENGTH)
	seen = ratio(of, to, name)
	if (seen == "")
		return ""
	met = op == "<" ? seen < bound : op == "<=" ? seen <= bound : seen >= bound
	total++
	reached += met
	return (of == "ddbfs" ? "" : "writeback ") to " " op " " bound (met ? "" : sprintf(" (**%.2f**)", seen))
}

BEGIN {
	while ((getline line < goals) > 0)
		if (line !~ /^#/ && split(line, word, " ") > 1) {
			wanted[word[1]] = line
			sub(/^[^ ]+ /, "", wanted[word[1]])
		}
	m = split(peers, peer, " ")
}

{
	split($3, f, "=")
	if (!(f[1] in seen_name)) {
		seen_name[f[1]] = 1
		names[++n] = f[1]
	}
	value[$1, $2, f[1]] = f[2]
	if ($1 > rounds)
		rounds = $1
}

END {
	printf "| work |"
	for (p = 1; p <= m; p++)
		printf " %s |", peer[p]
	for (p = 1; p <= m; p++)
		if (peer[p] != "ddbfs")
			printf " ddbfs / %s |", peer[p]
	printf " goal (**where missed**) |\n|---|"
	for (p = 1; p <= m; p++)
		printf peer[p] == "ddbfs" ? "---|" : "---|---|"
	printf "---|\n"
	for (i = 1; i <= n; i++) {
		printf "| `%s` |", names[i]
		for (p = 1; p <= m; p++)
			cell(figure(peer[p], names[i]), " %.4g |")
		for (p = 1; p <= m; p++)
			if (peer[p] != "ddbfs")
				cell(ratio("ddbfs", peer[p], names[i]), " %.2f |")
		text = ""
		count = split(wanted[names[i]], word, " ")
		for (g = 1; g <= count; g++) {
			one = judge(word[g], names[i])
			text = text (text != "" && one != "" ? "; " : "") one
		}
		printf " %s |\n", text
	}
	if (total)
		printf "\n%d rounds; %d of %d goals reached.\n", rounds, reached, total
}

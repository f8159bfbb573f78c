/*
 * node-record.c - see node-record.h.
 */
#include "fs/node-record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 64 /* of one file, beside the first */

int spot_set(struct spot *s, const struct place *at)
{
	char *name = s->name;

	if (!name || strcmp(name, at->name) != 0) {
		name = strdup(at->name);
		if (!name)
			return -ENOMEM;
		free(s->name);
	}
	*s = (struct spot){ at->directory, at->seq, name, at->state };
	return 0;
}

static void spot_clear(struct spot *s)
{
	free(s->name);
	*s = (struct spot){ 0 };
}

static bool spot_is(const struct spot *s, const struct place *at)
{
	return s->name && s->directory == at->directory && s->seq == at->seq &&
	       s->state == at->state && strcmp(s->name, at->name) == 0;
}

void spot_get(const struct spot *s, struct place *ret_place)
{
	ret_place->directory = s->directory;
	ret_place->seq = s->seq;
	ret_place->state = s->state;
	strcpy(ret_place->name, s->name ? s->name : "");
}

static struct spot *record_spot(struct record *r, const struct place *at)
{
	if (spot_is(&r->at, at))
		return &r->at;
	for (uint32_t i = 0; i < r->count; i++)
		if (spot_is(&r->others[i], at))
			return &r->others[i];
	return NULL;
}

/* Of several names a live one comes first: that is where the file stands. */
static void record_prefer_live(struct record *r)
{
	if (r->at.name && r->at.state == KEY_ACT)
		return;
	for (uint32_t i = 0; i < r->count; i++) {
		struct spot other = r->others[i];

		if (other.state != KEY_ACT)
			continue;
		r->others[i] = r->at;
		r->at = other;
		return;
	}
}

/* A name was destroyed: the file stands in another one the kernel knows. */
static void record_drop_spot(struct record *r, struct spot *gone)
{
	spot_clear(gone);
	if (r->count == 0)
		return;
	*gone = r->others[--r->count];
	record_prefer_live(r);
}

/* Remembers a further name. */
static int record_add_spot(struct record *r, const struct place *at)
{
	struct spot added = { 0 };

	if (record_spot(r, at))
		return 0;
	if (r->count == PLACES_MAX) {
		spot_clear(&r->others[0]);
		memmove(r->others, r->others + 1, --r->count * sizeof(*r->others));
	}
	if (spot_set(&added, at) < 0)
		return -ENOMEM;
	struct spot *grown = realloc(r->others, (r->count + 1) * sizeof(*grown));
	if (!grown) {
		spot_clear(&added);
		return -ENOMEM;
	}
	r->others = grown;
	grown[r->count++] = added;
	record_prefer_live(r);
	return 0;
}

void record_free(struct record *r)
{
	spot_clear(&r->at);
	if (r->kind == NODE_CONTROL_STATS) {
		free(r->text);
	} else {
		for (uint32_t i = 0; i < r->count; i++)
			spot_clear(&r->others[i]);
		free(r->others);
	}
	free(r);
}

void record_seen_live(struct record *r)
{
	r->writable = true;
	r->in_doubt = false;
	r->before = 0;
	r->release = false;
}

int record_enter(struct record *r, const struct node_entry *entry)
{
	if (!r->directory) {
		if (entry->live)
			record_seen_live(r);
		else if (r->writable && r->before == 0)
			r->before = r->lookups;
	}
	if (!entry->reference || !r->at.name)
		return spot_set(&r->at, entry->at);
	return record_add_spot(r, entry->at);
}

void record_follow(struct record *r, const struct lifecycle_change *change)
{
	bool destroyed = change->to.name[0] == '\0';
	struct spot *spot = r->directory ? &r->at : record_spot(r, &change->from);

	if (!spot)
		return;
	/* Without memory for the new name the place is lost: its next use is answered ESTALE, and the kernel looks it up. */
	if (destroyed || spot_set(spot, &change->to) < 0)
		record_drop_spot(r, spot);
	if (r->directory) {
		if (r->kind == NODE_ITEM)
			r->live_moves = 0;
		return;
	}
	record_prefer_live(r);
	if (change->temporary)
		r->release = true;
	else if (change->from.state == KEY_ACT && change->to.state == KEY_DEL && r->before == 0)
		r->before = r->lookups;
}

bool record_is_only_at(const struct record *r, const struct place *at)
{
	return r->count == 0 && spot_is(&r->at, at);
}

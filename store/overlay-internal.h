/*
 * overlay-internal.h - what overlay.c and overlay-body.c share.
 */
#ifndef STORE_OVERLAY_INTERNAL_H
#define STORE_OVERLAY_INTERNAL_H

#include "store/overlay.h"

/* Within what overlay_reserve made sure of; never NULL. Freed with the overlay. */
void *overlay_allocate(struct overlay *o, size_t size);

#endif

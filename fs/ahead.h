/*
 * ahead.h - how far the kernel reads ahead in files of the mount.
 *
 * FUSE begins with 128 KiB, and INIT can only lower that. A long read then costs
 * four round trips where one would do: with 512 KiB the daemon takes half the
 * time for the same bytes. Only root may raise it, through sysfs; without that
 * it stays as it is, and nothing else depends on it.
 */
#ifndef FS_AHEAD_H
#define FS_AHEAD_H

/* For the mount that the open file is on. Best effort. */
void ahead_raise(int fd);

#endif

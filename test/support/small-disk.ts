import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIB = Buffer.alloc(1024 * 1024);

/** Mounting takes root and Linux. */
export const canMount = process.platform === 'linux' && process.getuid?.() === 0 && mountWorks();

/** A file system of a test's own, so small that it can be filled. */
export class SmallDisk {
  private constructor(readonly path: string) {}

  /** @param mib its size; the journal wants 64 MiB free */
  static async mount(mib: number): Promise<SmallDisk> {
    const path = await mkdtemp(join(tmpdir(), 'postern-disk-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m,mode=0700`, 'tmpfs', path]);
    return new SmallDisk(path);
  }

  /** Until not a byte goes on it any more. */
  fill(): void {
    const fd = openSync(join(this.path, 'filler'), 'a');
    try {
      for (let size = MIB.length; size > 0;) {
        try {
          writeSync(fd, MIB, 0, size);
        } catch {
          size >>= 1;
        }
      }
    } finally {
      closeSync(fd);
    }
  }

  empty(): void {
    rmSync(join(this.path, 'filler'));
  }

  async unmount(): Promise<void> {
    execFileSync('umount', ['-l', this.path]);
    await rmdir(this.path);
  }
}

/** Containers often forbid it even to root. */
function mountWorks(): boolean {
  try {
    execFileSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

import { existsSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { packageRoot } from '../platform/package-root.js';

/** A file of the console, as it is sent. */
export interface ConsoleFile {
  /** Name below the folder `dist`. */
  name: string;
  /** For Content-Type. */
  extension: string;
  /** Of a file that was compressed when the console was built. */
  encoding: 'br' | 'gzip' | null;
  /** Its name changes with its content. */
  isImmutable: boolean;
}

/** What the build in the background reports (scripts/console.mjs). */
export interface BuildStatus {
  state: 'installing' | 'building' | 'failed';
  pid: number;
}

const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

/** Names of files without dots at the start, in the folder itself or in `assets`. */
const NAME = /^(assets\/)?\w[\w-]*(\.[\w-]+)+$/;

/** The files that the build of the package `console` writes. */
@Injectable()
export class ConsoleFiles {
  /** Folder of the package. */
  folder = join(packageRoot(), 'console');

  get dist(): string {
    return join(this.folder, 'dist');
  }

  get isBuilt(): boolean {
    return existsSync(join(this.dist, 'index.html'));
  }

  /**
   * @param path below `/console/`; one without a file is a page of the console, which its script shows
   * @param accepts true for an encoding that the client accepts
   * @returns null for a file that is not there
   */
  find(path: string, accepts: (encoding: string) => boolean): ConsoleFile | null {
    const isFile = NAME.test(path) && existsSync(join(this.dist, path));
    if (!isFile && path.startsWith('assets/')) return null;
    const name = isFile ? path : 'index.html';
    const compressed = ENCODINGS.find(
      ([encoding, suffix]) => accepts(encoding) && existsSync(join(this.dist, name + suffix)),
    );
    return {
      name: name + (compressed?.[1] ?? ''),
      extension: extname(name),
      encoding: compressed?.[0] ?? null,
      isImmutable: name.startsWith('assets/'),
    };
  }

  /** What the build does right now; null if none is running. */
  get status(): BuildStatus | null {
    let status: BuildStatus;
    try {
      status = JSON.parse(readFileSync(join(this.folder, '.build-status'), 'utf8')) as BuildStatus;
    } catch {
      // There is no such file, or it is being written.
      return null;
    }
    return status.state === 'failed' || isRunning(status.pid) ? status : null;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

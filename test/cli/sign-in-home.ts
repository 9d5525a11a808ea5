import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Stored = [string, Record<string, string>][];

/** A home folder for commands, with the tokens that `postern sign-in` stores there. */
export class SignInHome {
  readonly folder = mkdtempSync(join(tmpdir(), 'postern-home-'));
  readonly file = join(this.folder, 'postern/credentials.json');
  readonly env = { XDG_CONFIG_HOME: this.folder };

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }

  all(): Stored {
    return JSON.parse(readFileSync(this.file, 'utf8')) as Stored;
  }

  /** The URL and the tokens of the only one. */
  only(): Stored[number] {
    return this.all()[0]!;
  }

  /** Replaces what is stored. */
  store(url: string, signIn: Record<string, string>): void {
    writeFileSync(this.file, JSON.stringify([[url, signIn]]));
  }

  /** Makes the stored token due. */
  makeDue(): void {
    const [url, signIn] = this.only();
    this.store(url, { ...signIn, issuedAt: new Date(0).toISOString() });
  }
}

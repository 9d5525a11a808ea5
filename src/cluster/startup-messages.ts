import { cliCommand } from '../platform/cli-command.js';
import { DataDirError } from '../platform/data-dir.js';
import { EnvError } from '../config/env.js';
import { PermanentDatabaseError } from '../database/permanent-database-error.js';
import { EmbeddedPostgresError } from '../embedded-postgres/embedded-postgres-error.js';
import { ListenFault } from '../listen.js';

/** Faults whose message is written for operators; anything else is a bug of ours and needs its stack. */
const TOLD = [EnvError, DataDirError, PermanentDatabaseError, EmbeddedPostgresError, ListenFault];

/** What an operator is told once the gateway serves. */
export interface Ready {
  url: string;
  adminUrl: string | null;
  /** Calls have nowhere to go yet. */
  lacksProvider: boolean;
}

/** What the process says to whoever started it. */
export class Announcer {
  private url: string | null = null;
  private firstKey: string | null = null;

  say(line: string): void {
    process.stdout.write(`postern: ${line}\n`);
  }

  ready({ url, adminUrl, lacksProvider }: Ready, adminTokenFile: string | null): void {
    this.url = url;
    this.say(`ready on ${url}`);
    if (adminUrl !== null) this.say(`the admin API is on ${adminUrl} only`);
    if (adminTokenFile !== null) this.say(`the admin token is in ${adminTokenFile}`);
    if (lacksProvider) {
      this.say(
        'no provider yet: calls get 503 until you add one ' +
          `(${cliCommand('providers add openai --default')}), or ` +
          'set PROVIDER_URL and PROVIDER_KEY and start again',
      );
    }
    this.printFirstKey();
  }

  /** Printed below the address it belongs to, which may be known already. */
  onFirstKey(key: string): void {
    this.firstKey = key;
    this.printFirstKey();
  }

  onNoKey(): void {
    this.say(
      `there is no gateway key yet; make one: ${cliCommand('teams create <team>')}, then ` +
        cliCommand('keys create --team <team> --name <name>'),
    );
  }

  stopping(): void {
    this.say('stopping: calls in flight may end first; a second signal stops at once');
  }

  private printFirstKey(): void {
    if (this.url === null || this.firstKey === null) return;
    this.say(`your first gateway key (team "default"), shown this once: ${this.firstKey}`);
    this.say('try it:');
    process.stdout.write(
      `\n  curl ${this.url}/v1/chat/completions \\\n` +
        `    -H 'Authorization: Bearer ${this.firstKey}' \\\n` +
        `    -H 'Content-Type: application/json' \\\n` +
        `    -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Say hello"}]}'\n\n`,
    );
    this.firstKey = null;
  }
}

/** A fault in words for an operator. */
export function faultText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const told = TOLD.some((kind) => error instanceof kind);
  return told ? error.message : (error.stack ?? error.message);
}

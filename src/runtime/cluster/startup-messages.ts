import { cliCommand } from '../../platform/cli-command.js';
import { DataDirError } from '../../platform/data-dir.js';
import type { Env } from '../../config/env.js';
import { EnvError } from '../../config/env-error.js';
import { PermanentDatabaseError } from '../../database/permanent-database-error.js';
import { EmbeddedPostgresError } from '../../embedded-postgres/embedded-postgres-error.js';
import { ListenError } from '../listen.js';
import { LoadError } from '../loaded-modules.js';

/** Errors whose message is written for operators; any other error is a bug and needs its stack. */
const OPERATOR_ERRORS = [
  EnvError,
  DataDirError,
  PermanentDatabaseError,
  EmbeddedPostgresError,
  ListenError,
  LoadError,
];

/** What the start-up messages contain once the gateway serves. */
export interface Ready {
  url: string;
  adminUrl: string | null;
}

/** How people sign in to the console. */
export interface SignIn {
  /** File of the generated admin token; null if ADMIN_TOKEN is set. */
  adminTokenFile: string | null;
  env: Pick<Env, 'console' | 'publicUrl' | 'oidcIssuer'>;
}

/** What a start found out about the gateway keys. */
export interface KeysFound {
  /** The first key, which this start created; null if there were keys. */
  firstKey: string | null;
  /** True if there is no default provider yet. */
  lacksProvider: boolean;
}

/** Prints the start-up messages on standard output. */
export class StartupMessages {
  private url: string | null = null;
  private waiting: (Ready & { signIn: SignIn }) | null = null;
  /** null before Postgres was reached. */
  private lacksProvider: boolean | null = null;
  private keys: KeysFound | 'none' | null = null;
  private hasToldProvider = false;
  private hasToldKeys = false;

  say(line: string): void {
    process.stdout.write(`postern: ${line}\n`);
  }

  /** The gateway listens. It is ready once Postgres has been reached, whichever comes first. */
  serving(ready: Ready, signIn: SignIn): void {
    this.waiting = { ...ready, signIn };
    if (this.lacksProvider === null) this.say(`listening on ${ready.url}; waiting for Postgres`);
    else this.tellReady(this.waiting, this.lacksProvider);
  }

  /** Postgres was reached, and what is stored there is known. Only the first time counts, however many workers say so. */
  onDatabase(lacksProvider: boolean): void {
    if (this.lacksProvider !== null) return;
    this.lacksProvider = lacksProvider;
    if (this.waiting !== null) this.tellReady(this.waiting, lacksProvider);
  }

  private tellReady({ url, adminUrl, signIn }: Ready & { signIn: SignIn }, lacksProvider: boolean): void {
    this.url = url;
    this.say(`ready on ${url}`);
    if (adminUrl !== null) this.say(`the admin API is on ${adminUrl} only`);
    if (signIn.adminTokenFile !== null) this.say(`the admin token is in ${signIn.adminTokenFile}`);
    if (signIn.env.console === 'on') {
      const { publicUrl, oidcIssuer } = signIn.env;
      const token = signIn.adminTokenFile === null ? 'ADMIN_TOKEN' : 'the admin token';
      this.say(
        `the console is on ${publicUrl ?? adminUrl ?? url}/console; sign in with ${token}` +
          (oidcIssuer === undefined ? '' : ' or by single sign-on'),
      );
    }
    if (lacksProvider) this.tellProvider();
    this.tellKeys();
  }

  /** Prints how to use the keys, after the URL of the gateway and once, however many workers find them. */
  onKeys(found: KeysFound): void {
    this.keys ??= found;
    this.tellKeys();
  }

  /** Prints how to create the first key, also after the URL. */
  onNoKey(): void {
    this.keys ??= 'none';
    this.tellKeys();
  }

  stopping(): void {
    this.say(
      this.waiting === null
        ? 'stopping: waiting for the step of the start that runs; a second signal stops at once'
        : 'stopping: waiting for calls in flight; a second signal stops at once',
    );
  }

  private tellProvider(): void {
    if (this.hasToldProvider) return;
    this.hasToldProvider = true;
    this.say(
      'no provider yet: calls get 503 until you add one ' +
        `(${cliCommand('providers add openai --default')}), or ` +
        'set PROVIDER_URL and PROVIDER_KEY and restart the gateway',
    );
  }

  private tellKeys(): void {
    if (this.url === null || this.keys === null || this.hasToldKeys) return;
    this.hasToldKeys = true;
    if (this.keys === 'none') {
      this.say(
        `there is no gateway key yet; create one: ${cliCommand('teams create <team>')}, then ` +
          cliCommand('keys create --team <team> --name <name>'),
      );
      return;
    }
    const { firstKey, lacksProvider } = this.keys;
    if (firstKey === null) {
      this.say(
        `your gateway keys: ${cliCommand('keys list')}; a new one: ` +
          cliCommand('keys create --team <team> --name <name>'),
      );
      return;
    }
    this.say(`your first gateway key (team "default"), shown only once: ${firstKey}`);
    // Without a provider this call would fail.
    if (lacksProvider) this.tellProvider();
    else this.tellCall(firstKey);
    // The secret is not kept.
    this.keys = { firstKey: null, lacksProvider };
  }

  private tellCall(key: string): void {
    this.say('try it:');
    process.stdout.write(
      `\n  curl ${this.url}/v1/chat/completions \\\n` +
        `    -H 'Authorization: Bearer ${key}' \\\n` +
        `    -H 'Content-Type: application/json' \\\n` +
        `    -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Say hello"}]}'\n\n`,
    );
  }
}

/** The text of an error for operators: its message, or its stack if it is a bug. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isForOperators = OPERATOR_ERRORS.some((kind) => error instanceof kind);
  return isForOperators ? error.message : (error.stack ?? error.message);
}

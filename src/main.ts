import 'reflect-metadata';
import { DataDirError } from './config/data-dir.js';
import { EnvError, loadEnv } from './config/env.js';
import { DatabaseFault } from './database/database-fault.js';
import { EmbeddedPostgresError } from './database/embedded-postgres.js';
import { type Gateway, ListenFault, startGateway } from './gateway.js';
import { ProvidersService } from './providers/providers.service.js';

/** Faults whose message is written for operators; anything else is a bug of ours and needs its stack. */
const TOLD = [EnvError, DataDirError, DatabaseFault, EmbeddedPostgresError, ListenFault];

const say = (line: string) => process.stdout.write(`postern: ${line}\n`);

function giveUp(error: unknown): never {
  const told = TOLD.some((kind) => error instanceof kind);
  const text =
    error instanceof Error ? (told ? error.message : (error.stack ?? error.message)) : String(error);
  process.stderr.write(`postern: ${text}\n`);
  process.exit(1);
}

async function main(): Promise<void> {
  const env = loadEnv();
  let url = '';
  let firstKey = null as string | null;
  const starting = startGateway(env, {
    report: say,
    onFirstKey: (key) => {
      firstKey = key;
      // Else it is printed below the address it belongs to.
      if (url !== '') printFirstKey(url, key);
    },
    onNoKey: () =>
      say(
        'there is no gateway key yet; make one: postern teams create <team>, then ' +
          'postern keys create --team <team> --name <name>',
      ),
    // What this start opened is closed: an embedded Postgres must not outlive a process that has given up.
    onUnhealable: (fault) => void starting.then((gateway) => gateway.stop()).finally(() => giveUp(fault)),
  });
  // From the first moment: a start that is stopped half-way must not leave an embedded Postgres behind.
  const isStopping = stopOnSignals(starting);
  const gateway = await starting;
  if (isStopping()) return;
  ({ url } = gateway);
  say(`ready on ${url}`);
  if (gateway.adminUrl !== null) say(`the admin API is on ${gateway.adminUrl} only`);
  if (gateway.adminTokenFile !== null) say(`the admin token is in ${gateway.adminTokenFile}`);
  if (gateway.app.get(ProvidersService).lacksDefault) {
    say(
      'no provider yet: calls get 503 until you add one (postern providers add openai --default), or ' +
        'set PROVIDER_URL and PROVIDER_KEY and start again',
    );
  }
  if (firstKey !== null) printFirstKey(url, firstKey);
}

function printFirstKey(url: string, key: string): void {
  say(`your first gateway key (team "default"), shown this once: ${key}`);
  say('try it:');
  process.stdout.write(
    `\n  curl ${url}/v1/chat/completions \\\n` +
      `    -H 'Authorization: Bearer ${key}' \\\n` +
      `    -H 'Content-Type: application/json' \\\n` +
      `    -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Say hello"}]}'\n\n`,
  );
}

/** @returns tells whether a signal has come */
function stopOnSignals(starting: Promise<Gateway>): () => boolean {
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      say('stopping: calls in flight may end first; a second signal stops at once');
      starting
        .then((gateway) => gateway.stop())
        .then(
          () => process.exit(0),
          (error) => giveUp(error),
        );
    });
  }
  return () => stopping;
}

main().catch(giveUp);

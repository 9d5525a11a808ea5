import 'reflect-metadata';
import { loadEnv } from './config/env.js';
import { type Gateway, startGateway } from './gateway.js';

const say = (line: string) => process.stdout.write(`postern: ${line}\n`);

function giveUp(error: unknown): never {
  // Faults with a remedy are one line; anything else is a bug and needs its stack.
  const known = error instanceof Error && (error.name !== 'Error' || !('code' in error));
  process.stderr.write(
    `postern: ${known ? (error as Error).message : ((error as Error).stack ?? String(error))}\n`,
  );
  process.exit(1);
}

let firstKey: string | null = null;

async function main(): Promise<void> {
  const env = loadEnv();
  const gateway = await startGateway(env, {
    report: say,
    onFirstKey: (key) => (firstKey = key),
    onUnhealable: giveUp,
  });
  stopOnSignals(gateway);
  say(`ready on ${gateway.url}`);
  if (gateway.adminTokenFile !== null) say(`the admin token is in ${gateway.adminTokenFile}`);
  if (env.providerUrl === undefined) {
    say('no provider yet: calls get 503 until you set PROVIDER_URL and PROVIDER_KEY and start again');
  }
  if (firstKey !== null) printFirstKey(gateway.url, firstKey);
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

function stopOnSignals(gateway: Gateway): void {
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      say('stopping: calls in flight may end first; a second signal stops at once');
      gateway.stop().then(
        () => process.exit(0),
        (error) => giveUp(error),
      );
    });
  }
}

main().catch(giveUp);

// The demo itself: a stand-in provider, a new gateway before it, the official SDK through it, and the rows of the log.
// Everything is temporary and gone at the end, however the end comes. Arguments: what Node runs as the gateway.
import { mkdtempSync, realpathSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { jsonCall, streamedCall, client } from './calls.mjs';
import { removeDataDir, startGateway } from './gateway.mjs';
import { logTable } from './log.mjs';
import { PROVIDER_KEY, startProvider } from './provider.mjs';

const ending = new AbortController();
const cleanups = [];

function say(text) {
  process.stdout.write(`${text}\n`);
}

/** Every way this process may be told to end leads to the same cleaning up. */
const ended = new Promise((_, reject) => {
  const end = (why) => {
    ending.abort();
    reject(why);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () =>
      end(Object.assign(new Error(signal), { exitCode: 128 + constants.signals[signal] })),
    );
  }
  // `npm run demo | head` closes our output early.
  process.stdout.on('error', end);
  process.on('uncaughtException', end);
});

async function demo() {
  say('\n1. Start a stand-in provider (aimock). It takes one key only: its own.');
  const provider = await startProvider();
  cleanups.push(() => provider.stop());
  say(`   ${provider.url} takes ${PROVIDER_KEY}`);

  ending.signal.throwIfAborted();
  say('\n2. Start a new gateway before it, with an embedded Postgres in a temporary folder.');
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), 'postern-demo-')));
  cleanups.push(() => removeDataDir(dataDir));
  const gateway = startGateway(process.argv.slice(2), dataDir, { PROVIDER_URL: provider.url, PROVIDER_KEY });
  cleanups.push(() => gateway.stop());
  const { url, key, adminTokenFile } = await gateway.ready;
  say(`   ${url} made its first gateway key: ${key}`);

  say("\n3. Make a JSON call: the official openai SDK, its base URL and key set to the gateway's.");
  const openai = client(url, key);
  const answer = await jsonCall(openai);
  say(`   ${answer.question}\n   > ${answer.text}`);

  say('\n4. Make a streamed call, shown chunk by chunk as it arrives.');
  process.stdout.write('   > ');
  const streamed = await streamedCall(openai, (text) => process.stdout.write(text));
  say(
    `\n   ${streamed.chunks} chunks: the first after ${streamed.firstMs} ms, the last after ${streamed.lastMs} ms`,
  );

  say(
    '\n5. Read the request log (GET /admin/v1/requests, with the admin token): one row per call, no prompt, no answer.',
  );
  say((await logTable(url, adminTokenFile, 2)).replace(/^/gm, '   '));
}

let exitCode = 0;
try {
  await Promise.race([demo(), ended]);
  say('\n6. Stop both and remove the temporary folder. To start for real: npm start');
} catch (error) {
  exitCode = error.exitCode ?? 1;
  if (error.code !== 'EPIPE') process.stderr.write(`\nThe demo ended early: ${error.message}\n`);
}
for (const cleanup of cleanups.reverse()) {
  try {
    await cleanup();
  } catch (error) {
    exitCode ||= 1;
    process.stderr.write(`Clean-up failed: ${error.message}\n`);
  }
}
process.exit(exitCode);

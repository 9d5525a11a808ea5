// `npm start`: dependencies, build, gateway, from a fresh clone with nothing but Node. `--watch`: compile and restart on
// every change (`npm run start:dev`); with `--inspect` for a debugger (`npm run start:debug`).
import { watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ENTRY, isToldToStop, NODE_FLAGS, runNode } from './child.mjs';
import { compileProduct } from './compile.mjs';
import { main, prepare, root } from './prepare.mjs';

/** An editor saves in several steps, and often several files. */
const SETTLE_MS = 50;

await main(async () => {
  const args = process.argv.slice(2);
  await prepare();
  if (process.versions.node.startsWith('20.')) {
    console.log('Node.js 20 is out of support since April 2026; 24 LTS is recommended.');
  }
  if (args.includes('--watch')) return restartOnChange(args.filter((arg) => arg.startsWith('--inspect')));
  return runNode([...NODE_FLAGS, join(root, ENTRY), ...args], { ownGroup: true });
});

/** @param inspect flags for Node. Resolves when a signal has ended the gateway. */
async function restartOnChange(inspect) {
  const flags = [...NODE_FLAGS, '--enable-source-maps', ...inspect];
  let isChanged = false;
  let wake = () => {};
  for (const folder of ['src', 'migrations']) {
    watch(join(root, folder), { recursive: true }, () => {
      isChanged = true;
      wake();
    });
  }
  const change = async () => {
    while (!isChanged) await new Promise((resolve) => (wake = resolve));
    await sleep(SETTLE_MS);
    isChanged = false;
  };
  for (;;) {
    let gateway;
    const ended = runNode([...flags, join(root, ENTRY)], {
      ownGroup: true,
      onSpawn: (child) => (gateway = child),
    }).then((code) => {
      if (!isToldToStop())
        console.log(`The gateway ended with code ${code}; it starts again on the next change.`);
      return code;
    });
    const stopped = ended.then((code) => (isToldToStop() ? code : new Promise(() => {})));
    do {
      const code = await Promise.race([stopped, change()]);
      if (code !== undefined) return code;
    } while (!(await compiles()));
    console.log('Restarting for a change ...');
    gateway.kill('SIGTERM');
    await ended;
  }
}

/** @returns false when there is nothing new, or when it cannot be compiled, which it says */
async function compiles() {
  try {
    return (await compileProduct()) > 0;
  } catch (error) {
    console.error(error.message);
    return false;
  }
}

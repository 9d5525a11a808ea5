// `npm start`: dependencies, build, gateway, from a fresh clone with nothing but Node. `--watch`: compile and restart on
// every change (`npm run start:dev`); with `--inspect` for a debugger (`npm run start:debug`).
import { readdirSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ENTRY, isToldToStop, NODE_FLAGS, runNode, UNBUNDLED } from './child.mjs';
import { compileProduct } from './compile.mjs';
import { buildConsoleInBackground } from './console-background.mjs';
import { keepProvider } from './keep-provider.mjs';
import { main, prepare, root } from './prepare.mjs';

/** An editor saves in several steps, and often several files. */
const SETTLE_MS = 50;

await main(async () => {
  const args = process.argv.slice(2);
  const watches = args.includes('--watch');
  await prepare({ bundled: !watches });
  if (process.versions.node.startsWith('20.')) {
    console.log('Node.js 20 is out of support since April 2026; 24 LTS is recommended.');
  }
  await keepProvider(join(root, '.env'));
  if (watches) return restartOnChange(args.filter((arg) => arg.startsWith('--inspect')));
  return startGateway([...NODE_FLAGS, join(root, ENTRY), ...args]);
});

/** The console is built once the gateway serves, and not longer than the gateway runs. @returns the gateway's exit code */
async function startGateway(args) {
  let background;
  const code = await runNode(args, {
    ownGroup: true,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    onSpawn: (gateway) =>
      gateway.on('message', (message) => {
        if (message.ready && message.console) background ??= buildConsoleInBackground();
      }),
  });
  background?.stop();
  return code;
}

/** @param inspect flags for Node. @returns the gateway's exit code, once a signal has ended it */
async function restartOnChange(inspect) {
  const flags = [...NODE_FLAGS, '--enable-source-maps', ...inspect];
  const changes = watchFolders(['src', 'migrations']);
  for (;;) {
    let gateway;
    let isRestarting = false;
    const ended = runNode([...flags, join(root, UNBUNDLED)], {
      ownGroup: true,
      onSpawn: (child) => (gateway = child),
    });
    const stopped = ended.then((code) => {
      if (isToldToStop()) return code;
      if (!isRestarting) console.log(`The gateway ended with code ${code}; the next change starts it again.`);
      return new Promise(() => {});
    });
    do {
      const code = await Promise.race([stopped, changes.next()]);
      if (code !== undefined) {
        changes.end();
        return code;
      }
    } while (!(await compiles()));
    console.log('Restarting for a change ...');
    isRestarting = true;
    gateway.kill('SIGTERM');
    await ended;
  }
}

/** @returns `next` resolves when something in these folders has changed since it last did */
function watchFolders(folders) {
  const watchers = new Map();
  let isChanged = false;
  let wake = () => {};
  // One by one: Node's recursive watch on Linux loses a file that an editor replaces.
  const add = (folder) => {
    if (!watchers.has(folder)) {
      const watcher = watch(folder, () => {
        isChanged = true;
        wake();
      });
      watcher.on('error', () => {
        watcher.close();
        watchers.delete(folder);
      });
      watchers.set(folder, watcher);
    }
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory()) add(join(folder, entry.name));
  };
  const addAll = () => folders.forEach((folder) => add(join(root, folder)));
  addAll();
  return {
    next: async () => {
      while (!isChanged) await new Promise((resolve) => (wake = resolve));
      await sleep(SETTLE_MS);
      isChanged = false;
      addAll();
    },
    end: () => watchers.forEach((watcher) => watcher.close()),
  };
}

/** @returns false when there is nothing new, or when it cannot be compiled, which it says */
async function compiles() {
  try {
    return await compileProduct({ bundled: false });
  } catch (error) {
    console.error(error.message);
    return false;
  }
}

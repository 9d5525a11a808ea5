// `npm start`: dependencies, build, gateway, from a fresh clone with nothing but Node. `--watch`: rebuild and
// restart on every change (`npm run start:dev`).
import { join } from 'node:path';
import { endOthers, ENTRY, NODE_FLAGS, runNode } from './child.mjs';
import { forgetBuild, main, prepare, root } from './prepare.mjs';

await main(async () => {
  const args = process.argv.slice(2);
  const isWatching = args.includes('--watch');
  await prepare({ build: !isWatching });
  if (process.versions.node.startsWith('20.')) {
    console.log('Node.js 20 is out of support since April 2026; 24 LTS is recommended.');
  }
  if (isWatching) return watch();
  return runNode([...NODE_FLAGS, join(root, ENTRY), ...args], { ownGroup: true });
});

/**
 * Two children, no grandchildren to orphan but the one `node --watch` looks after: `nest start --watch` leaves its
 * application behind when it is killed. When one ends the other is ended too.
 */
async function watch() {
  forgetBuild(); // what the watcher emits is not what a stamp has vouched for
  const endingOthers = (code) => {
    endOthers();
    return code;
  };
  const nest = join(root, 'node_modules', '@nestjs', 'cli', 'bin', 'nest.js');
  let firstBuild;
  const isBuilt = new Promise((resolve) => (firstBuild = resolve));
  const compiler = runNode([nest, 'build', '--watch', '--preserveWatchOutput'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    ownGroup: true,
    onSpawn: (child) => {
      child.stdout.on('data', (chunk) => {
        process.stdout.write(chunk);
        // Started earlier, the application would restart once for every file of the first emit.
        if (chunk.includes('Watching for file changes')) firstBuild(true);
      });
    },
  }).then(endingOthers);

  const ended = await Promise.race([isBuilt, compiler]);
  if (ended !== true) return ended;
  const application = runNode(['--watch', '--watch-preserve-output', ...NODE_FLAGS, join(root, ENTRY)], {
    ownGroup: true,
    endWith: 'SIGTERM', // on SIGHUP `node --watch` dies without its child
  }).then(endingOthers);
  const [code] = await Promise.all([application, compiler]);
  return code;
}

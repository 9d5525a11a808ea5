// `npm run demo`: what has to be there, then the demo in a process group of its own, so that one Ctrl-C reaches it
// once and it can clean up.
import { join } from 'node:path';
import { ENTRY, NODE_FLAGS, runNode } from './child.mjs';
import { isInstalled, main, prepare, root } from './prepare.mjs';

await main(async () => {
  // The stand-in provider and the SDKs are for development, and need the network once.
  if (!isInstalled({ all: true }))
    console.log('The demo first installs what development needs: some 750 packages, about a minute.');
  await prepare({ all: true });
  const gateway = [...NODE_FLAGS, join(root, ENTRY)];
  return runNode([join(root, 'scripts', 'demo', 'run.mjs'), ...gateway], { cwd: root, ownGroup: true });
});

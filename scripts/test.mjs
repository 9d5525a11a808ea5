// `npm test`: dependencies, then Jest, which compiles, with whatever arguments were given.
import { join } from 'node:path';
import { runNode } from './child.mjs';
import { main, prepare, root } from './prepare.mjs';

const JEST = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
// Jest passes them on to its workers. A young generation that starts small and grows costs a tenth of their processor time.
const FLAGS = ['--min-semi-space-size=32', '--max-semi-space-size=64'];
// Node 20 optimizes a function after 66 KB of executed bytecode, but most tests end soon after: some 7 % of their time.
if (process.versions.node.startsWith('20.')) FLAGS.push('--interrupt-budget=400000');

await main(async () => {
  await prepare({ all: true, build: false });
  return runNode([...FLAGS, JEST, ...process.argv.slice(2)], { cwd: root });
});

// Where does the time go? The packages, and the functions with the most time of their own, of a .cpuprofile:
//   node bench/profile.mjs FILE [how many functions]
import { readFileSync } from 'node:fs';
import { root } from './workplace.mjs';

const [file, count = '40'] = process.argv.slice(2);
const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8'));
const own = new Map();
samples.forEach((id, i) => own.set(id, (own.get(id) ?? 0) + timeDeltas[i]));

const functions = new Map();
const owners = new Map();
for (const { id, callFrame } of nodes) {
  const { functionName, lineNumber } = callFrame;
  const micros = own.get(id) ?? 0;
  if (functionName === '(idle)') continue;
  const path = callFrame.url.replace(`file://${root}/`, '').replace(/^.*node_modules\//, '');
  const place = path === '' ? '' : ` ${path}:${lineNumber + 1}`;
  add(functions, `${functionName || '(anonymous)'}${place}`, micros);
  add(owners, ownerOf(path, functionName), micros);
}
const total = [...owners.values()].reduce((sum, micros) => sum + micros, 0);
process.stdout.write(`${(total / 1e6).toFixed(1)} s busy\n\nby package:\n`);
print(owners, 25);
process.stdout.write('\nby function, its own time:\n');
print(functions, Number(count));

function add(sums, name, micros) {
  sums.set(name, (sums.get(name) ?? 0) + micros);
}

function print(sums, most) {
  for (const [name, micros] of [...sums].sort((a, b) => b[1] - a[1]).slice(0, most)) {
    process.stdout.write(`${((100 * micros) / total).toFixed(1).padStart(5)} %  ${name}\n`);
  }
}

/** A folder of the gateway's own source, the name of a package, or a part of Node. */
function ownerOf(path, functionName) {
  if (path.startsWith('dist/src/')) return path.split('/').slice(0, 3).join('/');
  if (path.startsWith('node:')) return 'node (JavaScript)';
  if (path === '') return functionName.startsWith('(') ? functionName : 'node (native)';
  return path
    .split('/')
    .slice(0, path.startsWith('@') ? 2 : 1)
    .join('/');
}

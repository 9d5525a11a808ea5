// The least a Node proxy can do: no key, no log. What Postern costs is measured against this.
import { join } from 'node:path';
import { root } from '../workplace.mjs';
import { NODE_FLAGS } from './postern.mjs';
import { startNodeProxy } from './node-proxy.mjs';

export function startBare(bench) {
  return startNodeProxy(bench, 'bare', [...NODE_FLAGS, join(root, 'bench/contenders/bare-server.mjs')]);
}

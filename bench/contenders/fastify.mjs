// @fastify/http-proxy as its page shows it: a framework's proxy, without a key and without a log.
import { join } from 'node:path';
import { root } from '../workplace.mjs';
import { NODE_FLAGS } from './postern.mjs';
import { startNodeProxy } from './node-proxy.mjs';

export function startFastify(bench) {
  return startNodeProxy(bench, 'fastify', [...NODE_FLAGS, join(root, 'bench/contenders/fastify-server.mjs')]);
}

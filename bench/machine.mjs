// The machine that was measured on. Without it, results cannot be compared.
import { execFileSync } from 'node:child_process';
import { readFileSync, statfsSync } from 'node:fs';
import { arch, cpus, loadavg, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { LITELLM } from './contenders/litellm.mjs';
import { PORTKEY } from './contenders/portkey.mjs';
import { root } from './workplace.mjs';

export function describeMachine(workplace, postgres, names) {
  const models = cpus().map(({ model }) => model.trim());
  return {
    date: new Date().toISOString(),
    commit: version('git', ['-C', root, 'describe', '--always', '--dirty'], /(\S+)/),
    cores: models.length,
    cpu: models[0] ?? 'unknown',
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: `${platform()} ${release()} ${arch()}`,
    // What else ran: a result from a busy machine means little.
    loadBefore: Number(loadavg()[0].toFixed(2)),
    pinning: workplace.cores,
    journalDisk: `statfs type 0x${statfsSync(workplace.folder).type.toString(16)}`,
    versions: {
      postern: packageVersion(join(root, 'package.json')),
      node: process.versions.node,
      undici: packageVersion(join(root, 'node_modules/undici/package.json')),
      postgres,
      nginx: version('nginx', ['-v'], /nginx\/(\S+)/),
      haproxy: version('haproxy', ['-v'], /version (\S+)/),
      '@fastify/http-proxy': packageVersion(
        join(root, 'bench/node_modules/@fastify/http-proxy/package.json'),
      ),
      '@portkey-ai/gateway': names.includes('portkey') ? PORTKEY : null,
      litellm: names.includes('litellm') ? LITELLM : null,
    },
  };
}

/** The first line's version of a program; null where it is not installed. nginx prints it on standard error. */
export function version(program, args, pattern) {
  try {
    const text = execFileSync('/bin/sh', ['-c', `exec "$0" "$@" 2>&1`, program, ...args], {
      encoding: 'utf8',
    });
    return pattern.exec(text)?.[1] ?? null;
  } catch {
    return null;
  }
}

function packageVersion(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).version;
  } catch {
    return null;
  }
}

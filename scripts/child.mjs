// How do the scripts run another process as if it were themselves: same output, same signals, same exit code?
// Plain Node: this runs before node_modules exists.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';

/** The one place for the gateway's Node flags; `start:prod` and the Dockerfile repeat them and a test compares. */
export const NODE_FLAGS = ['--max-semi-space-size=32', '--v8-pool-size=1'];
export const ENTRY = 'dist/src/start.js';
/** One file for each source file, and packages from node_modules. */
export const UNBUNDLED = 'dist/src/main.js';

// One Ctrl-C reaches this process twice: from the terminal and, a few milliseconds later, from npm, which forwards
// it to its children. The gateway reads a second signal as "exit at once", so doubles are swallowed here. A second
// Ctrl-C by a person comes later than this.
const DOUBLE_MS = 300;

const running = new Set();
const lastSeen = new Map();

// Listening from the beginning, not only while a child runs: between two steps the default action would end this
// process without the exit handlers that release the lock.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => pass(signal));

// npm killed with -9, or the shell between npm and this process ended by a signal meant for npm (dash does not
// pass it on): nobody could stop the gateway any more, so it is stopped.
if (process.env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    pass('SIGTERM');
  }, 500).unref();
}

function pass(signal) {
  const now = performance.now();
  const isDouble = now - (lastSeen.get(signal) ?? -Infinity) < DOUBLE_MS;
  lastSeen.set(signal, now);
  if (running.size === 0) process.exit(128 + constants.signals[signal]);
  for (const { child, ownGroup } of running) {
    const hasItFromTerminal = !ownGroup && signal === 'SIGINT' && process.stdin.isTTY;
    if (!isDouble && !hasItFromTerminal) child.kill(signal);
  }
}

/** A signal has come: what runs is ending, or about to. */
export const isToldToStop = () => lastSeen.size > 0;

/** The exit code after the first of them. */
export const stoppedCode = () => 128 + constants.signals[[...lastSeen.keys()][0]];

/**
 * Spawns Node on `args` and resolves to the exit code, 128 + n after signal n.
 *
 * `ownGroup`: the child leads its own process group. Ctrl-C then reaches only this process, which forwards it
 * exactly once. Without it the child shares the terminal (needed for prompts) and gets Ctrl-C from there.
 */
export function runNode(args, { cwd, stdio = 'inherit', ownGroup = false, onSpawn } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd,
      stdio,
      detached: ownGroup && process.platform !== 'win32',
    });
    const entry = { child, ownGroup };
    running.add(entry);
    child.once('error', (error) => {
      running.delete(entry);
      reject(error);
    });
    child.once('close', (code, signal) => {
      running.delete(entry);
      resolve(code ?? 128 + (constants.signals[signal] ?? 1));
    });
    onSpawn?.(child);
  });
}

// `PROVIDER_URL=... npm start`: only this start sees such variables. The next start and the command line read .env, so
// this offers to write them there. Plain Node: no dependency.
import { appendFileSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { parseEnv } from 'node:util';

const VARIABLES = ['PROVIDER_URL', 'PROVIDER_KEY', 'PROVIDER_KEY_FILE', 'PROVIDER_AUTH'];
/** What callers append to the URL of a provider: the start rejects it and says so. */
const APPENDED = /\/v1(\/|$)|\/chat\/completions\/*$/i;
/** Never printed. */
const SECRET = 'PROVIDER_KEY';

/**
 * On a terminal it asks, elsewhere it prints the lines to add. Does nothing in production, or if .env has a provider.
 *
 * @param path of .env
 */
export async function keepProvider(
  path,
  { env = process.env, input = process.stdin, output = process.stdout } = {},
) {
  const isGiven = (name, source) => (source[name] ?? '').trim() !== '';
  if (!isGiven('PROVIDER_URL', env) || env.NODE_ENV === 'production') return;
  const text = read(path);
  if (text === null) return;
  const stored = parseEnv(text);
  // An environment that overrides the file does so on purpose; an invalid URL is the start's to report.
  if (isGiven('PROVIDER_URL', stored) || !isPlainUrl(env.PROVIDER_URL)) return;
  const given = VARIABLES.filter((name) => isGiven(name, env) && !isGiven(name, stored));
  const lines = given.map((name) => lineOf(name, env[name]));
  const why = 'PROVIDER_URL is set for this start only; the next start and ./postern read .env.';
  if (!input.isTTY || !output.isTTY || lines.includes(null)) {
    const shown = given.map((name, i) => (name === SECRET ? `${name}=<the provider's key>` : lines[i]));
    output.write(`${why} To keep it, add there:\n${shown.map((line) => `  ${line}\n`).join('')}`);
    return;
  }
  if (!(await isWanted(`${why}\nSave ${given.join(' and ')} in .env? [Y/n] `, input, output))) return;
  const gap = text === '' || text.endsWith('\n') ? '' : '\n';
  appendFileSync(path, `${gap}${lines.join('\n')}\n`, { mode: 0o600 });
  output.write(`Saved in ${path}.\n`);
}

/** @returns empty if there is no file, null if it cannot be read, which the start reports */
function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    return error.code === 'ENOENT' ? '' : null;
  }
}

function isPlainUrl(text) {
  if (!URL.canParse(text)) return false;
  const { username, password, pathname } = new URL(text);
  return username === '' && password === '' && !APPENDED.test(pathname);
}

/** A line of .env, or null for a value that no quotes can hold. */
function lineOf(name, value) {
  const quotes = /^[\w@%+=:,./-]+$/.test(value) ? [''] : ["'", '"', '`'];
  const lines = quotes.map((quote) => `${name}=${quote}${value}${quote}`);
  return lines.find((line) => parseEnv(line)[name] === value) ?? null;
}

/** False also for Ctrl-D. */
async function isWanted(question, input, output) {
  const terminal = createInterface({ input, output });
  // Ctrl-C stops the start, as at any other time.
  terminal.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    const ended = new Promise((resolve) => terminal.once('close', () => resolve('n')));
    return !/^\s*n/i.test(await Promise.race([terminal.question(question), ended]));
  } finally {
    terminal.close();
  }
}

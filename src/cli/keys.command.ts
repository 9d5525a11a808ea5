import { Command } from 'commander';
import { commandUser } from '../platform/actor.js';
import { parseInput } from '../admin/parse-input.js';
import { keyFilterSchema, newKeySchema, rotationSchema } from '../keys/keys.schema.js';
import type { KeyView } from '../keys/keys.schema.js';
import { KeysService } from '../keys/keys.service.js';
import { findKeyCommand } from './find-key.command.js';
import { keyLines } from './key-lines.js';
import { type OutputOptions, printJson, printPage } from './output.js';
import { shortTime } from './table.js';
import { withServices } from './with-services.js';

interface CreateOptions extends OutputOptions {
  team: string;
  name: string;
  expiresAt?: string;
  providers?: string;
  endpoints?: string;
  idempotency?: string;
}

interface ListOptions extends OutputOptions {
  team?: string;
  prefix?: string;
  status?: string;
  limit?: string;
  cursor?: string;
}

/** `postern keys …` */
export function keysCommand(): Command {
  const keys = new Command('keys');

  keys
    .command('create')
    .description('issue a key and print it, this once')
    .requiredOption('--team <name or id>', 'the team it belongs to')
    .requiredOption('--name <name>', 'what to call it, once per team')
    .option('--expires-at <time>', 'its end, such as 2030-01-31T12:00:00Z (default: none)')
    .option('--providers <names>', 'providers it may use, separated by commas (default: all)')
    .option('--endpoints <rule>', 'inference or all (default: inference)')
    .option('--idempotency <mode>', 'forward or replay (default: forward)')
    .option('--json', 'print the key object with "key" as JSON')
    .addHelpText(
      'after',
      `
Examples:
  postern keys create --team default --name ci
  postern keys create --team default --name trial --expires-at 2030-01-31T12:00:00Z
  KEY=$(postern keys create --team default --name ci --json | jq -r .key)`,
    )
    .action(create);

  keys
    .command('list')
    .description('show keys, newest first; never their secrets')
    .option('--team <name or id>', 'only those of this team')
    .option('--prefix <prefix>', 'only those that begin like this, 12 characters at most')
    .option('--status <status>', 'only active, disabled, expired or revoked ones')
    .option('--limit <n>', 'how many, 1 to 500 (default 50)')
    .option('--cursor <cursor>', 'continue after the page before')
    .option('--json', 'print the page as JSON')
    .addHelpText('after', '\nExamples:\n  postern keys list --status active\n  postern keys list --json')
    .action(list);

  keys
    .command('show')
    .description('show one key; never its secret')
    .argument('<id>', 'its id, from "postern keys list"')
    .option('--json', 'print the key object as JSON')
    .addHelpText('after', '\nExample:\n  postern keys show 01890a5d-ac96-774b-bcce-b302099a8057')
    .action(show);

  keys.addCommand(findKeyCommand());

  keys
    .command('rotate')
    .description('give a key a new secret and print it, this once; the older ones end')
    .argument('<id>', 'its id, from "postern keys list"')
    .option('--grace-seconds <n>', 'let the older secrets work for so long, 30 days at most (default: 0)')
    .option('--json', 'print the key object with "key" as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  postern keys rotate 01890a5d-ac96-774b-bcce-b302099a8057 --grace-seconds 3600',
    )
    .action(rotate);

  keys
    .command('revoke')
    .description('end a key for good')
    .argument('<id>', 'its id, from "postern keys list"')
    .option('--json', 'print the key object as JSON')
    .addHelpText('after', '\nExample:\n  postern keys revoke 01890a5d-ac96-774b-bcce-b302099a8057')
    .action(revoke);

  return keys;
}

async function create({ json, expiresAt, providers, ...rest }: CreateOptions): Promise<void> {
  const { expires_at, ...order } = parseInput(newKeySchema, {
    ...rest,
    expires_at: expiresAt,
    providers: providers?.split(',').map((provider) => provider.trim()),
  });
  const { key, secret } = await withServices((app) =>
    app.get(KeysService).create({ ...order, expiresAt: expires_at }, commandUser()),
  );
  if (json) {
    printJson({ ...key, key: secret });
    return;
  }
  console.log(`Issued the key ${key.name} of the team ${key.team} (${key.id}):\n\n  ${secret}\n`);
  console.log('Keep it now: only its digest is stored, it will not be shown again.');
}

async function list({ json, ...options }: ListOptions): Promise<void> {
  const filter = parseInput(keyFilterSchema, options);
  const page = await withServices((app) => app.get(KeysService).list(filter));
  const head = ['PREFIX', 'NAME', 'TEAM', 'STATUS', 'EXPIRES', 'ENDPOINTS', 'PROVIDERS', 'LAST USED', 'ID'];
  printPage(page, { json }, head, (key) => [
    key.prefix,
    key.name,
    key.team,
    statusOf(key),
    shortTime(key.expires_at),
    key.endpoints,
    key.providers?.join(',') ?? 'all',
    shortTime(key.last_used_at),
    key.id,
  ]);
}

async function show(id: string, { json }: OutputOptions): Promise<void> {
  const key = await withServices((app) => app.get(KeysService).get(id));
  if (json) printJson(key);
  else console.log(keyLines({ ...key, status: statusOf(key) }));
}

interface RotateOptions extends OutputOptions {
  graceSeconds?: string;
}

async function rotate(id: string, { graceSeconds, json }: RotateOptions): Promise<void> {
  const { grace_seconds: grace } = parseInput(rotationSchema, {
    grace_seconds: graceSeconds === undefined ? undefined : Number(graceSeconds),
  });
  const { key, secret } = await withServices((app) => app.get(KeysService).rotate(id, grace, commandUser()));
  if (json) {
    printJson({ ...key, key: secret });
    return;
  }
  console.log(`The key ${key.name} of the team ${key.team} (${key.id}) has a new secret:\n\n  ${secret}\n`);
  console.log('Keep it now: only its digest is stored, it will not be shown again.');
  console.log(grace === 0 ? 'The older ones have ended.' : `The older ones end within ${grace} s.`);
}

async function revoke(id: string, { json }: OutputOptions): Promise<void> {
  const key = await withServices((app) => app.get(KeysService).revoke(id, commandUser()));
  if (json) printJson(key);
  else
    console.log(
      `The key ${key.name} of the team ${key.team} (${key.prefix}…) is revoked since ${key.revoked_at}.`,
    );
}

/** For people only, from what the row says of itself; the filter also knows disabled teams. */
function statusOf(key: KeyView): string {
  if (key.revoked_at !== null) return 'revoked';
  if (key.expires_at !== null && Date.parse(key.expires_at) <= Date.now()) return 'expired';
  return key.disabled ? 'disabled' : 'active';
}

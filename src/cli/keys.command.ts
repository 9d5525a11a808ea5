import { Command } from 'commander';
import { commandUser } from '../platform/actor.js';
import { parseInput } from '../admin/parse-input.js';
import { keyFilterSchema, newKeySchema, rotationSchema } from '../keys/keys.schema.js';
import type { KeyView } from '../keys/keys.schema.js';
import { KeysService } from '../keys/keys.service.js';
import { LeakedKeyService } from '../keys/leaked-key.service.js';
import { cliCommand } from '../platform/cli-command.js';
import { duration, type OutputOptions, printJson, printPage, utcTime } from './output.js';
import { readSecret } from './read-secret.js';
import { type Cell, shortTime, table } from './table.js';
import { withServices } from './with-services.js';

const SHOWN_ONCE = 'Save it now: Postern stores only its digest and will not show it again.';

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
    .description('create a key and print it once')
    .requiredOption('--team <name or id>', 'team of the key')
    .requiredOption('--name <name>', 'key name, unique within the team')
    .option('--expires-at <time>', 'expiry time, for example 2030-01-31T12:00:00Z (default: never)')
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
    .description('list keys, newest first, without their secrets')
    .option('--team <name or id>', 'filter by team')
    .option('--prefix <prefix>', 'filter by the first characters, at most 12')
    .option('--status <status>', 'filter by status: active, disabled, expired or revoked')
    .option('--limit <n>', 'number of rows, 1 to 500 (default: 50)')
    .option('--cursor <cursor>', 'continue after the previous page')
    .option('--json', 'print the page as JSON')
    .addHelpText('after', '\nExamples:\n  postern keys list --status active\n  postern keys list --json')
    .action(list);

  keys
    .command('show')
    .description('show a key, without its secret')
    .argument('<id>', 'key ID, from "postern keys list"')
    .option('--json', 'print the key object as JSON')
    .addHelpText('after', '\nExample:\n  postern keys show 01890a5d-ac96-774b-bcce-b302099a8057')
    .action(show);

  keys
    .command('find')
    .description(
      'Find the key that a leaked secret belongs to. Prompts for the secret, or reads it from standard input.',
    )
    .option('--json', 'print the key object with its status as JSON')
    .addHelpText('after', '\nExamples:\n  postern keys find\n  postern keys find --json < leaked.txt')
    .action(find);

  keys
    .command('rotate')
    .description('replace the secret of a key and print the new one once')
    .argument('<id>', 'key ID, from "postern keys list"')
    .option('--grace-seconds <n>', 'how long the old secrets keep working, at most 30 days (default: 0)')
    .option('--json', 'print the key object with "key" as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  postern keys rotate 01890a5d-ac96-774b-bcce-b302099a8057 --grace-seconds 3600',
    )
    .action(rotate);

  keys
    .command('revoke')
    .description('revoke a key permanently')
    .argument('<id>', 'key ID, from "postern keys list"')
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
  console.log(`Created key ${nameOf(key)} (${key.id}):\n\n  ${secret}\n`);
  console.log(SHOWN_ONCE);
}

async function list({ json, ...options }: ListOptions): Promise<void> {
  const filter = parseInput(keyFilterSchema, options);
  const page = await withServices((app) => app.get(KeysService).list(filter));
  const head = ['PREFIX', 'NAME', 'TEAM', 'STATUS', 'EXPIRES', 'ENDPOINTS', 'PROVIDERS', 'LAST USED', 'ID'];
  printPage(page, 'keys', { json }, head, (key) => [
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

async function find({ json }: OutputOptions): Promise<void> {
  // A secret copied out of a log may come with spaces and line ends.
  const secret = (await readSecret('Leaked key')).trim();
  const key = await withServices((app) => app.get(LeakedKeyService).find(secret));
  if (json) {
    printJson(key);
    return;
  }
  console.log(keyLines(key));
  if (key.secret_status === 'ended') {
    console.log('\nThis secret has been rotated and no longer works.');
  } else if (key.status === 'active') {
    console.log(`\nThis key works. To replace it at once: ${cliCommand(`keys rotate ${key.id}`)}`);
  }
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
  console.log(`New secret for key ${nameOf(key)} (${key.id}):\n\n  ${secret}\n`);
  console.log(SHOWN_ONCE);
  if (grace === 0) {
    console.log('The previous secret no longer works.');
    return;
  }
  const end = utcTime(new Date(Date.now() + grace * 1_000).toISOString());
  console.log(`The previous secret stops working at ${end} (in ${duration(grace)}).`);
}

async function revoke(id: string, { json }: OutputOptions): Promise<void> {
  const key = await withServices((app) => app.get(KeysService).revoke(id, commandUser()));
  if (json) printJson(key);
  else console.log(`Revoked key ${nameOf(key)} (${key.prefix}…) at ${utcTime(key.revoked_at!)}.`);
}

/** The status of a key for people, from its own row. The `--status` filter also counts the keys of a disabled team as disabled. */
function statusOf(key: KeyView): string {
  if (key.revoked_at !== null) return 'revoked';
  if (key.expires_at !== null && Date.parse(key.expires_at) <= Date.now()) return 'expired';
  return key.disabled ? 'disabled' : 'active';
}

function nameOf({ team, name }: KeyView): string {
  return `${team}/${name}`;
}

/** One line per field of a key. */
function keyLines(key: KeyView & { status: string }): string {
  const lines: [string, Cell][] = [
    ['id', key.id],
    ['name', key.name],
    ['team', key.team],
    ['status', key.status],
    ['prefix', key.prefix],
    ['created', shortTime(key.created_at)],
    ['expires', shortTime(key.expires_at)],
    ['last used', shortTime(key.last_used_at)],
    ['endpoints', key.endpoints],
    ['providers', key.providers?.join(',') ?? 'all'],
    ['idempotency', key.idempotency],
  ];
  return table(null, lines);
}

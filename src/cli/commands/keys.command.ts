import { Command, Option } from 'commander';
import type { IssuedKeyView, KeyView, RotatedKeyView } from '../../keys/keys.schema.js';
import type { LeakedKey } from '../../keys/leaked-key.schema.js';
import type { Page } from '../../database/page.js';
import { cliCommand, shellQuoted } from '../../platform/cli-command.js';
import { type Api, path } from '../api.js';
import { addPageOptions, listPages, type PageOptions } from '../list-options.js';
import { CliError } from '../cli-error.js';
import { findKey, KEY_FORMS, wholeKey } from '../lookup.js';
import {
  addAnnotationFilters,
  addAnnotationOptions,
  ANNOTATION_OPTION_NAMES,
  type AnnotationOptions,
  annotationQuery,
  annotationsOf,
} from './options/annotation-options.js';
import { noteBefore } from './options/budget-note.js';
import { type CacheOptions, cacheOf } from './options/key-cache.js';
import { columnsOf, keyLines, labelOf, nameOf, statusOf } from './key-output.js';
import {
  addLimitOptions,
  hasLimitOptions,
  LIMIT_OPTION_NAMES,
  limitMembersOf,
  type LimitOptions,
} from './options/limit-options.js';
import { addModelRuleOptions, type ModelRuleOptions, modelRulesOf } from './options/model-rules.js';
import type { Output } from '../output.js';
import { readSecret } from '../prompt.js';
import { action, type Session } from '../session.js';
import { duration, parseTime, exactTime } from '../times.js';

const SHOWN_ONCE = 'Save it now: Postern stores only its digest and will not show it again.';
const NO_SECRET = `It has no secret: let a trust issue tokens for it with ${cliCommand('trusts create')}.`;
const KEY_ARGUMENT = ['<key>', KEY_FORMS] as const;

/** Settings of a key, in `create` and `update`. */
interface KeySettings extends ModelRuleOptions, LimitOptions, CacheOptions, AnnotationOptions {
  team?: string;
  name?: string;
  expiresAt?: string;
  providers?: string;
  endpoints?: string;
  idempotency?: string;
  /** --websockets, --no-websockets, or neither. */
  websockets?: boolean;
  onDisconnect?: string;
  /** False with --no-secret. */
  secret?: boolean;
}

interface ListOptions extends PageOptions, AnnotationOptions {
  team?: string;
  name?: string;
  prefix?: string;
  status?: string;
  expiresBefore?: string;
  unusedSince?: string;
  sort?: string;
}

/** `postern keys …` */
export function keysCommand(): Command {
  const keys = new Command('keys').description('gateway keys, which clients send to this gateway');

  addSettings(
    keys
      .command('create')
      .description('create a key and print it once')
      .requiredOption('--team <name or id>', 'team of the key')
      .requiredOption('--name <name>', 'key name, unique within the team'),
  )
    .option('--no-secret', 'without a secret: only tokens of a trust work, see postern trusts')
    .option('--json', 'print the key object with "key" as JSON')
    .addHelpText(
      'after',
      `
Examples:
  postern keys create --team default --name ci
  postern keys create --team default --name trial --expires-at 30d
  postern keys create --team default --name batch --models 'gpt-5*' --rpm 600 --budget 50/month@80
  KEY=$(postern keys create --team default --name ci --quiet)`,
    )
    .action(action(create));

  addPageOptions(
    addAnnotationFilters(
      keys
        .command('list')
        .description('list keys, newest first, without their secrets')
        .option('--team <name or id>', 'filter by team')
        .option('--name <text>', 'filter by a part of the name of the key, its team or its owner')
        .option('--prefix <prefix>', 'filter by the first characters, at most 12')
        .option('--status <status>', 'filter by status: active, disabled, expired or revoked')
        .option('--expires-before <time>', 'only keys that expire before: 30d, 2030-01-31')
        .option('--unused-since <time>', 'only keys without a call since: 90d, 2030-01-31')
        .option('--sort <by>', 'created, name, expires or last_used (default: created, newest first)'),
      ', of the key or of its team',
    ),
  )
    .option('--json', 'print the page as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  postern keys list --status active\n  postern keys list --name ads/note\n  postern keys list --status active --expires-before 30d --sort expires\n  postern keys list --unused-since 90d\n  postern keys list --all --json',
    )
    .action(action(list));

  keys
    .command('show')
    .description('show a key, without its secret')
    .argument(...KEY_ARGUMENT)
    .option('--json', 'print the key object as JSON')
    .addHelpText('after', '\nExamples:\n  postern keys show search/ci\n  postern keys show ptn_4fGh7Kq2')
    .action(action(show));

  keys
    .command('find')
    .description(
      'Find the key that a leaked secret or token belongs to. Prompts for it, or reads it from standard input.',
    )
    .option('--json', 'print the key object with its status as JSON')
    .addHelpText('after', '\nExamples:\n  postern keys find\n  postern keys find --json < leaked.txt')
    .action(action(find));

  addSettings(
    keys
      .command('update')
      .description(
        'change the name, expiry, permissions, limits, budgets, owner, contact or cost center of a key',
      )
      .argument(...KEY_ARGUMENT)
      .option('--name <name>', 'new name, unique within the team'),
  )
    .option('--json', 'print the key object as JSON')
    .addHelpText(
      'after',
      `
Examples:
  postern keys update search/ci --expires-at 90d
  postern keys update search/ci --expires-at never --providers all`,
    )
    .action(action(update));

  for (const [name, disabled] of [
    ['disable', true],
    ['enable', false],
  ] as const) {
    keys
      .command(name)
      .description(
        disabled ? 'reject calls with a key until it is enabled again' : 'accept calls with a disabled key',
      )
      .argument(...KEY_ARGUMENT)
      .option('--json', 'print the key object as JSON')
      .addHelpText('after', `\nExample:\n  postern keys ${name} search/ci`)
      .action(
        action(async ({ api, out }, _, text) => {
          const { id } = await findKey(api, text);
          printState(out, await api.patch<KeyView>(path('keys', id), { disabled }));
        }),
      );
  }

  keys
    .command('rotate')
    .description('replace the secret of a key and print the new one once')
    .argument(...KEY_ARGUMENT)
    .option('--grace-seconds <n>', 'how long the previous secret keeps working, at most 30 days (default: 0)')
    .option('--yes', 'do not ask')
    .option('--json', 'print the key object with "key" as JSON')
    .addHelpText('after', '\nExample:\n  postern keys rotate search/ci --grace-seconds 3600')
    .action(action(rotate));

  keys
    .command('revoke')
    .description('revoke a key permanently')
    .argument(...KEY_ARGUMENT)
    .option('--yes', 'do not ask')
    .option('--json', 'print the key object as JSON')
    .addHelpText('after', '\nExample:\n  postern keys revoke search/ci')
    .action(action(revoke));

  return keys;
}

function addSettings(command: Command): Command {
  return addLimitOptions(
    addModelRuleOptions(
      addAnnotationOptions(command)
        .option('--expires-at <time>', 'expiry: 24h, 30d, 6M, 2030-01-31, 2030-01-31T12:00:00Z, never')
        .option('--providers <names>', 'providers it may use, separated by commas, or all')
        .option('--endpoints <rule>', 'inference, own (everything at providers of the team) or all')
        .option('--idempotency <mode>', 'forward or replay')
        .option('--websockets', 'may open WebSockets on /v1/realtime and /v1/responses')
        .option('--no-websockets', 'may open no WebSockets, the default')
        .option(
          '--cache <seconds>',
          'response cache: seconds for which a response is returned again, or none',
        )
        .addOption(
          new Option(
            '--on-disconnect <rule>',
            'when its client disconnects: cancel the call, finish it (read its usage), or default: as the provider says',
          ).choices(['cancel', 'finish', 'default']),
        )
        .option('--cache-shared <scope>', 'who gets its responses: key or team'),
    ),
  );
}

/** The settings as fields of the admin API; null for none, and absent if not given. @param before the key as it is */
async function settingsOf(api: Api, options: KeySettings, before: KeyView | null): Promise<object> {
  const { team, name, expiresAt, providers, endpoints, idempotency, websockets, onDisconnect } = options;
  return {
    ...present({ team, name, endpoints, idempotency, websockets }),
    ...(onDisconnect !== undefined && { on_disconnect: onDisconnect === 'default' ? null : onDisconnect }),
    ...cacheOf(options, before),
    ...modelRulesOf(options),
    ...limitMembersOf(options, before),
    ...annotationsOf(options),
    ...(expiresAt !== undefined && {
      expires_at: expiresAt === 'never' ? null : parseTime(expiresAt, 1, '--expires-at', await api.zone()),
    }),
    ...(providers !== undefined && {
      providers: providers === 'all' ? null : providers.split(',').map((provider) => provider.trim()),
    }),
  };
}

/** The fields that were given. */
function present(fields: Readonly<Record<string, string | boolean | undefined>>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

async function create({ api, out }: Session, options: KeySettings) {
  const settings = await settingsOf(api, options, null);
  const key = await api.post<IssuedKeyView>('keys', {
    ...settings,
    ...(options.secret === false && { secret: false }),
  });
  printIssued(out, key, `Created key ${nameOf(key)} (${key.id}):`);
}

async function list({ api, out }: Session, options: ListOptions) {
  const { team, name, prefix, status, expiresBefore, unusedSince, sort, ...others } = options;
  const query = {
    ...{ team, search: name, prefix, status, sort },
    ...annotationQuery(others),
    ...(expiresBefore !== undefined && {
      expires_before: parseTime(expiresBefore, 1, '--expires-before', await api.zone()),
    }),
    ...(unusedSince !== undefined && {
      unused_since: parseTime(unusedSince, -1, '--unused-since', await api.zone()),
    }),
  };
  const page = await listPages<Page<KeyView>>(api, 'keys', query, others);
  out.page(page, { noun: 'keys', columns: columnsOf(page.data) });
}

async function show({ api, out }: Session, _: object, text?: string) {
  const key = await findKey(api, text!);
  out.result(key, () => keyLines(out, key, statusOf(key)));
}

async function find({ api, out }: Session) {
  const secret = wholeKey((await readSecret('Leaked key')).trim());
  const key = await api.post<LeakedKey>('keys/find', { key: secret });
  out.result(key, () => `${keyLines(out, key, key.status)}${tokenLines(out, key)}`);
  const works = key.status === 'active' && key.secret_status === 'active';
  if (works) out.note(`\n${remedyOf(key)}`);
  else if (key.secret_status === 'ended') out.note(`\n${endOf(key)}`);
}

/** What a token is, below the lines of its key; nothing for a secret of the key itself. */
function tokenLines(out: Output, { kind, trust, sign_in_id, subject, secret_expires_at }: LeakedKey): string {
  if (kind !== 'exchange' && kind !== 'sign_in') return '';
  const lines = out.fields([
    kind === 'exchange' ? ['token of trust', trust] : ['token of sign-in', sign_in_id],
    ['issued to', subject],
    ['token expires', exactTime(secret_expires_at!)],
  ]);
  return `\n\n${lines}`;
}

/** How to end what works. */
function remedyOf(key: LeakedKey): string {
  const { kind, trust, sign_in_id } = key;
  const revoke = 'To end only this token: POST /oauth/revoke.';
  if (kind === 'exchange')
    return `This token works. To stop all tokens of its trust: ${cliCommand(`trusts disable ${shellQuoted(trust!)}`)}\n${revoke}`;
  if (kind === 'sign_in')
    return `This token works. To end its sign-in: ${cliCommand(`sign-ins end ${sign_in_id}`)}\n${revoke}`;
  return `This key works. To replace it at once: ${cliCommand(`keys rotate ${shellQuoted(nameOf(key))}`)}`;
}

/** Why a secret does not work that has ended. */
function endOf({ kind, secret_expired: isExpired }: LeakedKey): string {
  if (kind !== 'exchange' && kind !== 'sign_in') return 'This secret has been rotated and no longer works.';
  if (isExpired) return 'This token has expired or was revoked.';
  return kind === 'exchange'
    ? 'This token does not work: its trust is disabled, or its key was rotated since.'
    : 'This token no longer works: its sign-in or person has ended.';
}

async function update({ api, out }: Session, options: KeySettings, text?: string) {
  if (
    !hasLimitOptions(options) &&
    options.cacheShared === undefined &&
    Object.keys(await settingsOf(api, options, null)).length === 0
  )
    throw new CliError(
      'nothing to change: give --name, --expires-at, --providers, --endpoints, --idempotency, --websockets, --on-disconnect, --cache, --models, --stream-usage, ' +
        `${ANNOTATION_OPTION_NAMES}, ${LIMIT_OPTION_NAMES}`,
    );
  const before = await findKey(api, text!);
  const { id } = before;
  const change = await settingsOf(api, options, before);
  const key = await api.patch<KeyView>(path('keys', id), change);
  out.result(key, () => `Updated key ${labelOf(key)}.`);
  await noteBefore({ api, out }, { key: id }, before.budgets, key.budgets);
}

async function rotate(session: Session, { graceSeconds }: { graceSeconds?: string }, text?: string) {
  const { api, out } = session;
  const { id, ...before } = await findKey(api, text!);
  const grace = graceSeconds === undefined ? 0 : Number(graceSeconds);
  const end = grace > 0 ? `stops working in ${duration(grace)}` : 'stops working at once';
  const older =
    before.previous_secret_expires_at === null
      ? ''
      : ` The one before it, which works until ${exactTime(before.previous_secret_expires_at)}, stops working at once.`;
  await session.confirm(`Rotate key ${labelOf(before)}? Its present secret ${end}.${older}`);
  // What is not a number is sent as it is, so that the API names the rule.
  const body =
    graceSeconds === undefined ? {} : { grace_seconds: Number.isNaN(grace) ? graceSeconds : grace };
  // A gateway of an earlier version does not name them.
  const key = await api.post<IssuedKeyView & Partial<RotatedKeyView>>(path('keys', id, 'rotate'), body);
  printIssued(out, key, `New secret for key ${nameOf(key)} (${key.id}):`);
  const until = key.previous_secret_expires_at;
  out.note(
    until === null
      ? 'The previous secret no longer works.'
      : `The previous secret stops working at ${exactTime(until)} (in ${duration(grace)}).`,
  );
  for (const prefix of key.ended_secrets ?? [])
    out.note(
      `The older secret ${prefix}… was still in its grace and no longer works: a key has at most two.`,
    );
}

async function revoke(session: Session, _: object, text?: string) {
  const { api, out } = session;
  const { id, ...before } = await findKey(api, text!);
  if (before.revoked_at === null)
    await session.confirm(
      `Revoke key ${labelOf(before)}? Its calls are rejected at once, and it cannot be restored.`,
    );
  const key = await api.post<KeyView>(path('keys', id, 'revoke'));
  const what = before.revoked_at === null ? 'Revoked key' : 'Revoked already: key';
  out.result(key, () => `${what} ${labelOf(key)} at ${exactTime(key.revoked_at!)}.`);
}

function printIssued(out: Output, key: IssuedKeyView, title: string): void {
  const { key: secret } = key;
  if (out.isJson) out.json(key);
  else if (out.isQuiet) console.log(secret ?? key.id);
  else console.log(secret === null ? title.replace(/:$/, '.') : `${title}\n\n  ${secret}\n`);
  out.note(secret === null ? NO_SECRET : SHOWN_ONCE);
}

function printState(out: Output, key: KeyView): void {
  out.result(key, () => `Key ${labelOf(key)} is ${statusOf(key)}.`);
}

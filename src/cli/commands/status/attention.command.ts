import { Command } from 'commander';
import type { Attention, AttentionItem, AttentionKind } from '../../../attention/attention.schema.js';
import { cliCommand, shellQuoted } from '../../../platform/cli-command.js';
import type { Output, Style } from '../../output.js';
import { action, type Session } from '../../session.js';
import { count } from '../../table.js';
import { minuteTime } from '../../times.js';

/** Exit code with --exit-code if something is critical: 1 is a failure of the command. */
const CRITICAL = 2;

/** So many of a kind stand in its line. */
const NAMED = 5;

/** `postern attention` */
export function attentionCommand(): Command {
  return new Command('attention')
    .description('list what needs somebody: failing providers, spent budgets, expiring keys and others')
    .option('--exit-code', 'end with 2 if something is critical, with 0 if not')
    .option('--json', 'print the list as JSON')
    .addHelpText(
      'after',
      `
The most urgent first, as the Overview of the console begins.

Examples:
  postern attention
  postern attention --exit-code --quiet`,
    )
    .action(action(attention));
}

async function attention({ running: api, out }: Session, options: { exitCode?: boolean }): Promise<void> {
  const found = await api.get<Attention>('attention');
  const { data } = found;
  if (data.length === 0) out.result(found, () => 'All well: nothing needs you now.');
  else {
    out.result(found, () => out.fields(data.map(lineOf)));
    printNext(out, data);
  }
  if (options.exitCode === true && data.some(({ level }) => level === 'critical'))
    process.exitCode = CRITICAL;
}

function printNext(out: Output, items: readonly AttentionItem[]): void {
  const commands = new Set(items.map((item) => cliCommand(WORDS[item.kind].next(item))));
  out.note(`\nSee more:\n${[...commands].map((command) => `  ${command}`).join('\n')}`);
}

const STYLES: Record<AttentionItem['level'], Style | undefined> = {
  critical: 'red',
  warning: 'yellow',
  info: undefined,
};

function lineOf({ kind, level, count: number, names }: AttentionItem) {
  const { one, many } = WORDS[kind];
  if (names.length === 0) return [level, one, STYLES[level]] as const;
  const shown = names.slice(0, NAMED);
  const more = number - shown.length;
  const list = shown.map(withDetail).join(', ') + (more > 0 ? ` and ${count(more)} more` : '');
  const text = `${count(number)} ${number === 1 ? one : many}: ${list}`;
  return [level, text, STYLES[level]] as const;
}

/** "groq (since 2030-01-31 12:00, 25 of 25 calls failed in the last minutes)" */
function withDetail({ name, since, detail }: AttentionItem['names'][number]): string {
  const more = [since && `since ${minuteTime(since)}`, detail].filter(Boolean).join(', ');
  return more === '' ? name : `${name} (${more})`;
}

interface Words {
  one: string;
  many: string;
  /** The command that shows more. */
  next: (item: AttentionItem) => string;
}

const NO_PROVIDER = 'no provider can take calls: they get 503';

const WORDS: Record<AttentionKind, Words> = {
  provider_missing: { one: NO_PROVIDER, many: NO_PROVIDER, next: () => 'providers add --help' },
  provider_failing: {
    one: 'provider fails most of its calls',
    many: 'providers fail most of their calls',
    next: ({ names: [first] }) => `requests list --failed --provider ${shellQuoted(first!.name)}`,
  },
  budget_blocking: {
    one: 'budget is spent or rejects calls',
    many: 'budgets are spent or reject calls',
    next: () => 'limits list',
  },
  system_degraded: {
    one: 'part of the gateway does not work as it should',
    many: 'parts of the gateway do not work as they should',
    next: () => 'status',
  },
  transactions_lost: {
    one: 'time Postgres has lost what it had acknowledged',
    many: 'times Postgres has lost what it had acknowledged',
    next: () => 'database regressions list',
  },
  secret_unreadable: {
    one: 'secret was encrypted with another master key',
    many: 'secrets were encrypted with another master key',
    next: () => 'providers list',
  },
  sink_failing: {
    one: 'sink does not take rows',
    many: 'sinks do not take rows',
    next: () => 'sinks list',
  },
  webhook_failing: {
    one: 'webhook does not take events',
    many: 'webhooks do not take events',
    next: () => 'webhooks list',
  },
  key_expiring: {
    one: 'key expires within 7 days',
    many: 'keys expire within 7 days',
    next: () => 'keys list --status active --expires-before 7d --sort expires',
  },
  key_old_secret: {
    one: 'rotated key is still used with its old secret, which will stop working',
    many: 'rotated keys are still used with their old secrets, which will stop working',
    next: () => 'keys list --status active',
  },
  price_missing: {
    one: 'model was called that has no price',
    many: 'models were called that have no price',
    next: () => 'prices missing',
  },
  key_unused: {
    one: 'key was not used for 90 days',
    many: 'keys were not used for 90 days',
    next: () => 'keys list --status active --unused-since 90d',
  },
};

import type { Command } from 'commander';
import type { Budget, Rates, ShownLimits } from '../../../limit-rules/limit-rules.schema.js';
import { CliError } from '../../cli-error.js';
import { type Cell, count } from '../../table.js';

/** Options that teams and keys have alike. */
export interface LimitOptions {
  rpm?: string;
  tpm?: string;
  concurrency?: string;
  budget?: string[];
  countFrom?: string;
}

export const LIMIT_OPTION_NAMES = '--rpm, --tpm, --concurrency or --budget';

export function addLimitOptions(command: Command): Command {
  return command
    .option('--rpm <n>', 'requests a minute, or none')
    .option('--tpm <n>', 'tokens a minute, or none')
    .option('--concurrency <n>', 'calls at the same time, or none')
    .option(
      '--budget <budget>',
      'USD or tokens in a day, week, month or in total: 50/month, 2000000tokens/day, 50/month@80,100 (alerts at 80 and ' +
        '100 %), 50/month:warn (rejects nothing); repeatable; none removes all',
      (text: string, list: string[] = []) => [...list, text],
    )
    .option(
      '--count-from <from>',
      'a new budget counts what was used since the start of its period, or from now; default: period',
    );
}

type Present = Pick<ShownLimits, 'limits' | 'budgets'>;

/**
 * The options that were given, as fields of the admin API, which replaces each field as a whole: the other limits and
 * budgets of the team or key stay.
 *
 * @param present of a team or key that is changed
 */
export function limitMembersOf(options: LimitOptions, present: Present | null): object {
  const { rpm, tpm, concurrency, budget, countFrom } = options;
  if (countFrom !== undefined && countFrom !== 'period' && countFrom !== 'now')
    throw new CliError('--count-from must be period or now');
  const given = {
    ...(rpm !== undefined && { requests_per_minute: amountOf(rpm, '--rpm') }),
    ...(tpm !== undefined && { tokens_per_minute: amountOf(tpm, '--tpm') }),
    ...(concurrency !== undefined && { concurrent_requests: amountOf(concurrency, '--concurrency') }),
  };
  return {
    ...(Object.keys(given).length > 0 && { limits: withoutNone({ ...present?.limits, ...given }) }),
    ...(budget !== undefined && {
      budgets: budgetsOf(budget, present?.budgets ?? []).map((one) => ({
        ...one,
        ...(countFrom !== undefined && { count_from: countFrom }),
      })),
    }),
  };
}

export function hasLimitOptions({ rpm, tpm, concurrency, budget }: LimitOptions): boolean {
  return [rpm, tpm, concurrency, budget].some((option) => option !== undefined);
}

function amountOf(text: string, option: string): number | null {
  if (text === 'none') return null;
  if (!/^\d{1,12}$/.test(text)) throw new CliError(`${option} must be a whole number, or none`);
  return Number(text);
}

/** Null if nothing is limited any more. */
function withoutNone(rates: Partial<Rates>): Partial<Rates> | null {
  return Object.values(rates).every((rate) => rate === null) ? null : rates;
}

const BUDGET =
  /^(?<amount>\d+(?:\.\d+)?)(?<tokens>tokens)?\/(?<period>day|week|month|total)(?::(?<mode>block|warn))?(?:@(?<alerts>\d+(?:,\d+)*))?$/;

function budgetsOf(texts: readonly string[], present: readonly Budget[]): object[] {
  if (texts.includes('none')) {
    if (texts.length > 1) throw new CliError('--budget none must be given alone');
    return [];
  }
  const budgets = new Map<string, object>(present.map((budget) => [budgetKind(budget), budget]));
  const given = new Set<string>();
  for (const text of texts) {
    const { amount, tokens, period, mode, alerts } = BUDGET.exec(text)?.groups ?? {};
    if (amount === undefined || (tokens !== undefined && amount.includes('.'))) {
      throw new CliError(
        `--budget must be an amount and a period such as 50/month, 2000000tokens/day or 50/month:warn@80,100, or none; ${JSON.stringify(text)} is not`,
      );
    }
    const kind = `${tokens ?? 'usd'}/${period!}`;
    if (given.has(kind)) throw new CliError(`--budget must not be given twice for ${kind}`);
    given.add(kind);
    budgets.set(kind, {
      // A budget that is there keeps its mode and alerts, unless they are given.
      ...budgets.get(kind),
      ...(tokens === undefined ? { usd: amount } : { tokens: Number(amount) }),
      period,
      ...(mode !== undefined && { mode }),
      ...(alerts !== undefined && { alert_at: alerts.split(',').map(Number) }),
    });
  }
  return [...budgets.values()];
}

/** What tells the budgets of one owner apart. */
export function budgetKind({ usd, period }: Budget): string {
  return `${usd === undefined ? 'tokens' : 'usd'}/${period}`;
}

/** The limits of a team or key, for people; no line for what is unlimited. */
export function limitLines({
  limits,
  budgets,
  each_end_user: each,
}: ShownLimits): (readonly [string, Cell])[] {
  const lines: [string, Cell][] = [
    ['requests a minute', limits?.requests_per_minute ?? null],
    ['tokens a minute', limits?.tokens_per_minute ?? null],
    ['calls at once', limits?.concurrent_requests ?? null],
    ['budgets', budgets.length === 0 ? null : budgets.map(budgetText).join(' ')],
    ['each end user', each === null ? null : eachText(each)],
  ];
  return lines.filter(([, value]) => value !== null);
}

/** In the form of `--budget`. */
function budgetText({ usd, tokens, period, mode, alert_at: alerts }: Budget): string {
  const amount = usd ?? `${tokens!}tokens`;
  return `${amount}/${period}${mode === 'warn' ? ':warn' : ''}${alerts.length > 0 ? `@${alerts.join(',')}` : ''}`;
}

function eachText({ budgets, ...rates }: NonNullable<ShownLimits['each_end_user']>): string {
  const names = { requests_per_minute: 'requests a minute', tokens_per_minute: 'tokens a minute' };
  const parts = Object.entries({ ...names, concurrent_requests: 'calls at once' }).flatMap(([name, text]) => {
    const amount = rates[name as keyof typeof rates];
    return amount === null ? [] : [`${count(amount)} ${text}`];
  });
  return [...parts, ...budgets.map(budgetText)].join(', ');
}

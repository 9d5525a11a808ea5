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

/** Which calls the limits are for; only where no other option has these names. */
export interface LimitFilterOptions {
  provider?: string;
  model?: string;
  eachSession?: boolean;
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

export function addLimitFilterOptions(command: Command): Command {
  return command
    .option('--provider <names>', 'only calls to these providers count, separated by commas')
    .option(
      '--model <patterns>',
      'only calls of these models count, separated by commas, for example claude-opus-*',
    )
    .option('--each-session', 'each session alone: --budget 5/session');
}

type Present = Pick<ShownLimits, 'limits' | 'filtered_limits' | 'budgets' | 'each_session'>;
type Filter = { providers?: string[] | null | undefined; models?: string[] | null | undefined };

/**
 * The options that were given, as fields of the admin API, which replaces each field as a whole: the other limits and
 * budgets of the team or key stay.
 *
 * @param present of a team or key that is changed
 */
export function limitMembersOf(options: LimitOptions & LimitFilterOptions, present: Present | null): object {
  const { rpm, tpm, concurrency, budget, countFrom, eachSession = false } = options;
  const filter = { providers: listOf(options.provider), models: listOf(options.model) };
  if (countFrom !== undefined && countFrom !== 'period' && countFrom !== 'now')
    throw new CliError('--count-from must be period or now');
  const given = {
    ...(rpm !== undefined && { requests_per_minute: amountOf(rpm, '--rpm') }),
    ...(tpm !== undefined && { tokens_per_minute: amountOf(tpm, '--tpm') }),
    ...(concurrency !== undefined && { concurrent_requests: amountOf(concurrency, '--concurrency') }),
  };
  const withStart = (budgets: object[]) =>
    budgets.map((one) => ({ ...one, ...(countFrom !== undefined && { count_from: countFrom }) }));
  if (eachSession) {
    const { budgets = [], ...rates } = present?.each_session ?? {};
    if (Object.keys(given).length > 0 && hasFilter(filter))
      throw new CliError('--provider and --model of sessions are for budgets only');
    const each = {
      ...rates,
      ...given,
      budgets: budget === undefined ? budgets : withStart(budgetsOf(budget, budgets, filter, true)),
    };
    const isNone = each.budgets.length === 0 && withoutNone({ ...rates, ...given }) === null;
    return { each_session: isNone ? null : each };
  }
  return {
    ...(Object.keys(given).length > 0 &&
      (hasFilter(filter)
        ? { filtered_limits: filteredOf(present?.filtered_limits ?? [], filter, given) }
        : { limits: withoutNone({ ...present?.limits, ...given }) })),
    ...(budget !== undefined && {
      budgets: withStart(budgetsOf(budget, present?.budgets ?? [], filter, false)),
    }),
  };
}

/** Sorted, as the API has them. */
function listOf(text: string | undefined): string[] | null {
  return text === undefined ? null : [...new Set(text.split(',').map((one) => one.trim()))].sort();
}

function hasFilter({ providers, models }: Filter): boolean {
  return (providers ?? models ?? null) !== null;
}

function filterKey({ providers, models }: Filter): string {
  return JSON.stringify([providers ?? null, models ?? null]);
}

function filteredOf(
  present: ShownLimits['filtered_limits'],
  filter: Filter,
  given: Partial<Rates>,
): object[] {
  const others = present.filter((one) => filterKey(one) !== filterKey(filter));
  const { providers: _, models: __, ...rates } = present.find((one) => !others.includes(one)) ?? {};
  const changed = withoutNone({ ...rates, ...given });
  return changed === null ? others : [...others, { ...filter, ...changed }];
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
  /^(?<amount>\d+(?:\.\d+)?)(?<tokens>tokens)?\/(?<period>day|week|month|total|session)(?::(?<mode>block|warn))?(?:@(?<alerts>\d+(?:,\d+)*))?$/;

/** @param isOfSession budgets of each session have the period of that name, and others none of it */
function budgetsOf(
  texts: readonly string[],
  present: readonly Budget[],
  filter: Filter,
  isOfSession: boolean,
): object[] {
  if (texts.includes('none')) {
    if (texts.length > 1) throw new CliError('--budget none must be given alone');
    return hasFilter(filter) ? present.filter((one) => filterKey(one) !== filterKey(filter)) : [];
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
    if ((period === 'session') !== isOfSession)
      throw new CliError('--each-session and the period session, as in 5/session, belong together');
    const what = { ...(tokens === undefined && { usd: amount }), period: period as Budget['period'] };
    const kind = budgetKind({ ...what, ...filter });
    if (given.has(kind))
      throw new CliError(`--budget must not be given twice for ${tokens ?? 'usd'}/${period!}`);
    given.add(kind);
    budgets.set(kind, {
      // A budget that is there keeps its mode and alerts, unless they are given.
      ...budgets.get(kind),
      ...(hasFilter(filter) && filter),
      ...(tokens === undefined ? { usd: amount } : { tokens: Number(amount) }),
      period,
      ...(mode !== undefined && { mode }),
      ...(alerts !== undefined && { alert_at: alerts.split(',').map(Number) }),
    });
  }
  return [...budgets.values()];
}

/** What tells the budgets of one owner apart. */
export function budgetKind({ usd, period, ...filter }: Pick<Budget, 'usd' | 'period'> & Filter): string {
  return `${usd === undefined ? 'tokens' : 'usd'}/${period} ${filterKey(filter)}`;
}

/** The limits of a team or key, for people; no line for what is unlimited. */
export function limitLines({
  limits,
  budgets,
  filtered_limits: filtered,
  each_end_user: user,
  each_session: session,
}: ShownLimits): (readonly [string, Cell])[] {
  const lines: [string, Cell][] = [
    ['requests a minute', limits?.requests_per_minute ?? null],
    ['tokens a minute', limits?.tokens_per_minute ?? null],
    ['calls at once', limits?.concurrent_requests ?? null],
    ['budgets', budgets.length === 0 ? null : budgets.map(budgetText).join(' ')],
    ...filtered.map((one): [string, Cell] => [`for ${namesOf(one)}`, eachText({ ...one, budgets: [] })]),
    ['each end user', user === null ? null : eachText(user)],
    ['each session', session === null ? null : eachText(session)],
  ];
  return lines.filter(([, value]) => value !== null);
}

/** In the form of `--budget`. */
function budgetText({ usd, tokens, period, mode, alert_at: alerts, ...filter }: Budget): string {
  const amount = usd ?? `${tokens!}tokens`;
  const only = hasFilter(filter) ? ` (${namesOf(filter)})` : '';
  return `${amount}/${period}${mode === 'warn' ? ':warn' : ''}${alerts.length > 0 ? `@${alerts.join(',')}` : ''}${only}`;
}

function namesOf({ providers, models }: Filter): string {
  return [...(providers ?? []), ...(models ?? [])].join(', ');
}

function eachText({ budgets, ...rates }: NonNullable<ShownLimits['each_end_user']>): string {
  const names = { requests_per_minute: 'requests a minute', tokens_per_minute: 'tokens a minute' };
  const parts = Object.entries({ ...names, concurrent_requests: 'calls at once' }).flatMap(([name, text]) => {
    const amount = rates[name as keyof typeof rates];
    return amount === null ? [] : [`${count(amount)} ${text}`];
  });
  return [...parts, ...budgets.map(budgetText)].join(', ');
}

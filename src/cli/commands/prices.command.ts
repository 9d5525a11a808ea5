import { Command } from 'commander';
import type { Page } from '../../database/page.js';
import type { MissingPrices, PriceView, RepricedView, Resolution } from '../../pricing/prices.schema.js';
import { cliCommand, shellQuoted } from '../../platform/cli-command.js';
import { formatDecimal, parseDecimal } from '../../platform/decimal.js';
import type { ProviderView } from '../../providers/providers.schema.js';
import { type Api, path } from '../api.js';
import { CliError } from '../cli-error.js';
import { addPageOptions, addRangeOptions, listPages, type PageOptions } from '../list-options.js';
import { action, type Session } from '../session.js';
import { type Column, count } from '../table.js';
import { minuteTime, parseRange, parseTime } from '../times.js';
import { addUnitOptions, changedUnits, UNIT_HELP, type UnitOptions, unitsOf } from './options/price-units.js';

interface Amounts extends UnitOptions {
  input?: string;
  cachedInput?: string;
  cacheWrite?: string;
  output?: string;
  perCall?: string;
  effectiveFrom?: string;
  note?: string;
}

/** `postern prices …` */
export function pricesCommand(): Command {
  const prices = new Command('prices').description('what models cost, in USD per million tokens');

  addPageOptions(
    prices
      .command('list')
      .description('list prices, newest first')
      .option('--catalog <name>', 'filter by provider or price list')
      .option('--model <model>', 'filter by exactly this model or pattern')
      .option('--source <source>', 'filter by source: catalog or custom'),
  )
    .option('--json', 'print the page as JSON')
    .addHelpText('after', '\nExample:\n  postern prices list --source custom')
    .action(
      action<PageOptions & { catalog?: string; model?: string; source?: string }>(
        async ({ api, out }, { catalog, model, source, ...paging }) => {
          const page = await listPages<Page<PriceView>>(api, 'prices', { catalog, model, source }, paging);
          out.page(page, { noun: 'prices', columns: COLUMNS });
        },
      ),
    );

  addAmounts(
    prices
      .command('set')
      .description('set a price of your own, which comes before the catalog')
      .argument('<catalog>', 'name of a provider, or of a price list')
      .argument('<model>', 'model, or the start of its name and *'),
  )
    .option('--json', 'print the price as JSON')
    .addHelpText(
      'after',
      `
${UNIT_HELP}
Examples:
  postern prices set mine 'llama-3*' --input 0.20 --output 0.60
  postern prices set openai 'gpt-image-*' --unit images=40 --tier size=1024x1536,images=63
  postern prices set openai gpt-4o-mini --input 0.15 --output 0.60 --tier service_tier=batch,factor=0.5
  postern prices set openai gpt-4o-mini --input 0.15 --output 0.60 --effective-from 2030-01-31`,
    )
    .action(action(set));

  addAmounts(
    prices.command('update').description('change a price of your own').argument('<id>', 'ID of the price'),
  )
    .option('--json', 'print the price as JSON')
    .addHelpText(
      'after',
      `
--unit changes one unit; images=none removes it. --tier replaces all tiers; none removes them.
${UNIT_HELP}
Example:
  postern prices update 01890a5d-ac96-774b-bcce-b302099a8057 --output 0.50`,
    )
    .action(action(update));

  prices
    .command('remove')
    .description('remove a price of your own')
    .argument('<id>', 'ID of the price')
    .option('--yes', 'do not ask')
    .option('--json', 'print the ID as JSON')
    .addHelpText('after', '\nExample:\n  postern prices remove 01890a5d-ac96-774b-bcce-b302099a8057')
    .action(
      action(async (session, _, id) => {
        await session.confirm(`Remove the price ${id}? Calls then cost what the next matching price says.`);
        await session.api.delete(path('prices', id));
        session.out.result({ removed: id }, () => `Removed price ${id}.`);
      }),
    );

  prices
    .command('resolve')
    .description('show which price applies to a call, and why')
    .argument('<provider>', 'provider name')
    .argument('<model>', 'model as calls name it')
    .option('--at <time>', 'start of the call (default: now)')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', '\nExample:\n  postern prices resolve openai gpt-4o-mini')
    .action(action(resolve));

  addRangeOptions(
    prices
      .command('missing')
      .description('list models that were called this month, or in the last 7 days, and have no price'),
  )
    .option('--wide', 'print every column in full, also if the terminal is narrower')
    .option('--json', 'print the list as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  postern prices missing\n  postern prices missing --from 2030-01-01 --to 2030-02-01',
    )
    .action(action(missing));

  addRangeOptions(
    prices.command('reprice').description('compute the costs of stored calls again, with the prices of now'),
  )
    .option('--model <model>', 'only calls of this model')
    .option('--dry-run', 'only count what would change')
    .option('--yes', 'do not ask')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', '\nExample:\n  postern prices reprice --from 2030-01-01 --to 2030-02-01 --dry-run')
    .action(action(reprice));

  return prices;
}

function addAmounts(command: Command): Command {
  return addUnitOptions(command)
    .option('--input <usd>', 'input tokens')
    .option('--cached-input <usd>', 'input tokens read from the cache')
    .option('--cache-write <usd>', 'input tokens written to the cache')
    .option('--output <usd>', 'output tokens')
    .option('--per-call <usd>', 'each call, besides its tokens')
    .option('--effective-from <time>', 'for calls that start then or later: a date, a time, today')
    .option('--note <text>', 'remark');
}

async function amountsOf(api: Api, options: Amounts): Promise<Partial<PriceView>> {
  const { input, cachedInput, cacheWrite, output, perCall, effectiveFrom, note } = options;
  const fields = {
    ...{ input, cached_input: cachedInput, cache_write: cacheWrite, output, per_call: perCall, note },
    effective_from: effectiveFrom && parseTime(effectiveFrom, 1, '--effective-from', await api.zone()),
    ...(options.tier?.[0] === 'none'
      ? { ...unitsOf({ unit: options.unit }), tiers: null }
      : unitsOf(options)),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

async function missing({ api, out }: Session, options: { from?: string; to?: string }) {
  const found = await api.get<MissingPrices>('prices/missing', {
    ...parseRange(options, await api.zone()),
  });
  if (out.isJson) return out.json(found);
  out.note(`Calls from ${minuteTime(found.from)} to ${minuteTime(found.to)}:\n`);
  out.page({ ...found, next_cursor: null }, { noun: 'models without a price', columns: MISSING });
}

async function set({ api, out }: Session, options: Amounts, catalog?: string, model?: string) {
  const price = await api.post<PriceView>('prices', { catalog, model, ...(await amountsOf(api, options)) });
  out.result(price, () => `Set the price of ${nameOf(price)} (${price.id}).`);
  if (!out.printsNotes) return;
  const { data } = await api.get<Page<ProviderView>>('providers');
  if (data.some((provider) => [provider.name, provider.catalog].includes(price.catalog)))
    out.note(aboutStoredCalls(price));
  else
    out.note(
      `No provider is called ${price.catalog} or has that price list, so the price applies to no call. ` +
        `Providers: ${data.map(({ name }) => name).join(', ') || 'none'}.`,
    );
}

async function update({ api, out }: Session, options: Amounts, id?: string) {
  const change = await amountsOf(api, options);
  if (Object.keys(change).length === 0)
    throw new CliError('nothing to change: give an amount, --effective-from or --note');
  if (change.extra !== undefined) {
    const { extra } = await api.get<PriceView>(path('prices', id!));
    change.extra = changedUnits(extra, change.extra);
  }
  const price = await api.patch<PriceView>(path('prices', id!), change);
  out.result(price, () => `Updated the price of ${nameOf(price)} (${price.id}).`);
  out.note(aboutStoredCalls(price));
}

async function resolve({ api, out }: Session, { at }: { at?: string }, provider?: string, model?: string) {
  const found = await api.get<Resolution>('prices/resolve', {
    ...{ provider, model },
    ...(at !== undefined && { at: parseTime(at, -1, '--at', await api.zone()) }),
  });
  out.result(found, () => {
    const { price } = found;
    if (price === null) return found.reason;
    const amounts = [
      ['input', price.input],
      ['cached input', price.cached_input],
      ['cache write', price.cache_write],
      ['output', price.output],
      ['per call', price.per_call],
      ...Object.entries(price.extra ?? {}).map(
        ([unit, value]) => [unit.replaceAll('_', ' '), value] as const,
      ),
      ...(price.tiers ?? []).map((tier) => ['tier', JSON.stringify(tier)] as const),
    ].flatMap(([name, value]) => (value === null ? [] : [[name!, value] as const]));
    return `${found.reason}\n\n${out.fields([...amounts, ['source', price.source], ['id', price.id]])}`;
  });
}

/** Decimal places of a cost. */
const USD_SCALE = 9;

interface RepriceOptions {
  from?: string;
  to?: string;
  model?: string;
  dryRun?: boolean;
}

async function reprice(session: Session, { model, dryRun = false, ...options }: RepriceOptions) {
  const { from, to } = parseRange(options, await session.api.zone());
  if (from === undefined) throw new CliError('--from must be given, for example 7d');
  const range = { from, to: to ?? new Date().toISOString() };
  if (!dryRun) await session.confirm(`Compute the costs of calls from ${range.from} to ${range.to} again?`);
  const { api, out } = session;
  const body = { ...range, ...(model !== undefined && { model }), dry_run: dryRun };
  const sums = { rows: 0, changed: 0, before: 0n, after: 0n };
  let cursor: string | undefined;
  do {
    const part = await api.post<RepricedView>('prices/reprice', { ...body, ...(cursor && { cursor }) });
    sums.rows += part.rows;
    sums.changed += part.changed;
    sums.before += parseDecimal(part.cost_before, USD_SCALE)!;
    sums.after += parseDecimal(part.cost_after, USD_SCALE)!;
    cursor = part.next_cursor ?? undefined;
    if (cursor !== undefined) out.progress(`${count(sums.rows)} calls so far`);
  } while (cursor !== undefined);
  const [before, after] = [sums.before, sums.after].map((cost) => formatDecimal(cost, USD_SCALE));
  const { rows, changed } = sums;
  out.result(
    { rows, changed, cost_before: before, cost_after: after, dry_run: dryRun },
    () =>
      `${dryRun ? 'Would change' : 'Changed'} ${count(changed)} of ${count(rows)} calls: ` +
      `${before} USD before, ${after} USD after.`,
  );
}

/** Calls of a pattern are repriced with those of all models. */
function aboutStoredCalls({ model }: PriceView): string {
  const only = model.endsWith('*') ? '' : ` --model ${shellQuoted(model)}`;
  return (
    'Calls of the last 7 days that have no cost get one within two minutes. Reprice others:\n  ' +
    cliCommand(`prices reprice --from 30d${only} --dry-run`)
  );
}

function nameOf({ catalog, model }: PriceView): string {
  return `${catalog}/${model}`;
}

/** Prices that have always applied begin in 1970. */
function fromText({ effective_from: at }: PriceView): string | null {
  return Date.parse(at) <= 0 ? 'always' : minuteTime(at);
}

const COLUMNS: readonly Column<PriceView>[] = [
  { head: 'CATALOG', cell: ({ catalog }) => catalog },
  { head: 'MODEL', cell: ({ model }) => model, min: 12 },
  { head: 'INPUT', cell: ({ input }) => input, align: 'right' },
  { head: 'CACHED', cell: ({ cached_input: cached }) => cached, align: 'right', drop: 4 },
  { head: 'OUTPUT', cell: ({ output }) => output, align: 'right' },
  { head: 'PER CALL', cell: ({ per_call: perCall }) => perCall, align: 'right', drop: 3 },
  { head: 'FROM', cell: fromText, drop: 2 },
  { head: 'SOURCE', cell: ({ source }) => source },
  { head: 'ID', cell: ({ id }) => id, drop: 1 },
];

const MISSING: readonly Column<MissingPrices['data'][number]>[] = [
  { head: 'PROVIDER', cell: ({ provider }) => provider },
  { head: 'PRICE LIST', cell: ({ catalog }) => catalog },
  { head: 'MODEL', cell: ({ model }) => model, min: 12 },
  { head: 'FIRST DAY', cell: ({ first_day: day }) => day, drop: 1 },
  { head: 'LAST DAY', cell: ({ last_day: day }) => day },
  { head: 'CALLS', cell: ({ calls }) => count(calls), align: 'right' },
];

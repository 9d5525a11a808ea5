import type { Command } from 'commander';
import { EXTRA_UNITS, type ExtraPrices } from '../../../pricing/costs/units.js';
import type { PriceView } from '../../../pricing/prices.schema.js';
import { CliError } from '../../cli-error.js';

export interface UnitOptions {
  unit?: string[];
  tier?: string[];
}

const TIER_AMOUNTS = ['input', 'cached_input', 'cache_write', 'cache_write_1h', 'output'];
const TIER_TEXTS = ['service_tier', 'size', 'quality', 'factor', 'cached_factor'];
const UNITS: readonly string[] = EXTRA_UNITS;

const collect = (value: string, earlier: string[] = []) => [...earlier, value];

export function addUnitOptions(command: Command): Command {
  return command
    .option(
      '--unit <name=usd>',
      'a thousand of a unit such as images or pages, or a million of tokens such as input_audio_tokens; may be repeated',
      collect,
    )
    .option(
      '--tier <name=value,…>',
      'other prices for some calls, such as service_tier=batch,factor=0.5; may be repeated',
      collect,
    );
}

/** For `--help`. */
export const UNIT_HELP = `
Units: ${UNITS.join(', ')}.
Members of a tier: above (input tokens), between (HH:MM:SS-HH:MM:SS, UTC), ${TIER_TEXTS.join(', ')}, ${TIER_AMOUNTS.join(', ')}, and units.
`;

/** The options as fields of the admin API. */
export function unitsOf({ unit, tier }: UnitOptions): Partial<Pick<PriceView, 'extra' | 'tiers'>> {
  return {
    ...(unit !== undefined && { extra: Object.fromEntries(unit.map(priceOf)) }),
    ...(tier !== undefined && { tiers: tier.map(tierOf) }),
  };
}

/** The units of a price with those of `changes`; one whose price is `none` is left out. */
export function changedUnits(present: PriceView['extra'], changes: PriceView['extra']): PriceView['extra'] {
  const units = Object.entries({ ...present, ...changes }).filter(([, price]) => price !== 'none');
  return units.length === 0 ? null : Object.fromEntries(units);
}

function priceOf(text: string): [string, string] {
  const [name, price] = pairOf(text, '--unit');
  if (!UNITS.includes(name)) throw new CliError(`--unit: ${name} is no unit; units are ${UNITS.join(', ')}`);
  return [name, price];
}

function tierOf(text: string): NonNullable<PriceView['tiers']>[number] {
  const tier: Record<string, unknown> = {};
  const extra: ExtraPrices = {};
  for (const part of text.split(',')) {
    const [name, value] = pairOf(part, '--tier');
    if (name === 'above') tier.above = Number(value);
    else if (name === 'between') tier.between = value.split('-');
    else if (UNITS.includes(name)) extra[name as keyof ExtraPrices] = value;
    else if ([...TIER_AMOUNTS, ...TIER_TEXTS].includes(name)) tier[name] = value;
    else throw new CliError(`--tier: ${name} is no member of a tier; see postern prices set --help`);
  }
  return { ...tier, ...(Object.keys(extra).length > 0 && { extra }) };
}

function pairOf(text: string, option: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1)
    throw new CliError(`${option} must be a name and a value, such as images=40: ${text}`);
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

import { z } from 'zod';
import {
  EXAMPLE_TIME,
  flag,
  oneOf,
  pageOf,
  paging,
  pathId,
  searchText,
  shownId,
  time,
  timestamp,
  version,
  withTimeRange,
} from '../admin/fields.schema.js';
import { PROVIDER_NAME } from '../providers/provider-name.js';
import { MAX_TIERS, type Tier } from './cost.js';
import { EXTRA_UNITS, type ExtraUnit, isCounted } from './costs/units.js';
import { PRICE_SOURCES } from './price.entity.js';

const PRICE =
  'must be an amount in USD as text, such as "2.50": up to 6 digits before the point and 6 after it';
const CATALOG =
  'must be the name of a provider or of a price list: 1 to 63 characters of a-z 0-9 - _; `default` is the provider of PROVIDER_URL';
const MODEL = 'must be the name of a model, or the start of one and *, at most 1,024 printable characters';
const TIME_OF_DAY = 'must be a time of day in UTC, such as 16:30:00';

const ABOUT = {
  catalog: 'Name of a provider, or of the price list of providers.',
  model: 'A model by its whole name, or the start of a name and `*`, in any case. The longest match applies.',
  effective_from: 'The price applies to calls that start at this time or later.',
  input: 'USD per million input tokens; null: they are free.',
  cached_input: 'USD per million tokens read from the cache; null: they cost what input costs.',
  cache_write: 'USD per million tokens written to the cache; null: they cost what input costs.',
  cache_write_1h:
    'USD per million tokens written to the cache for an hour; null: they cost what any cache write costs.',
  output: 'USD per million output tokens; null: they are free.',
  per_call: 'USD per call with token counts, besides its tokens.',
  extra:
    'Units with a price of their own: USD per million tokens, or per thousand searches, images, pages, seconds or characters. A call of which a unit such as `images` is not known has no cost.',
  tiers: 'Other prices for some calls. All that apply are put over the price in this order.',
  note: 'A remark.',
};

const amount = () => z.string(PRICE).regex(/^\d{1,6}(\.\d{1,6})?$/, PRICE);
const price = (description: string) => amount().nullable().meta({ description, example: '2.50' });

const tokenPrices = {
  input: price(ABOUT.input),
  cached_input: price(ABOUT.cached_input),
  cache_write: price(ABOUT.cache_write),
  cache_write_1h: price(ABOUT.cache_write_1h),
  output: price(ABOUT.output),
};

const UNIT_PRICE =
  'must be an amount in USD as text, such as "40": up to 6 digits before the point and 12 after it';
const unitAmount = () => z.string(UNIT_PRICE).regex(/^\d{1,6}(\.\d{1,12})?$/, UNIT_PRICE);

/** @param unit what is counted besides tokens */
function extraPrice(unit: ExtraUnit) {
  const per = isCounted(unit) ? 'thousand' : 'million';
  return (isCounted(unit) ? unitAmount() : amount())
    .optional()
    .meta({ description: `USD per ${per} of \`${unit}\`.`, example: '10.00' });
}

const extra = z
  .strictObject(
    Object.fromEntries(EXTRA_UNITS.map((unit) => [unit, extraPrice(unit)])) as Record<
      ExtraUnit,
      z.ZodOptional<z.ZodString>
    >,
    `must have only the members ${EXTRA_UNITS.join(', ')}`,
  )
  .nullable()
  .meta({ description: ABOUT.extra, example: { web_searches: '10.00' } });

const timeOfDay = z.string(TIME_OF_DAY).regex(/^([01]\d|2[0-3]):[0-5]\d:[0-5]\d$/, TIME_OF_DAY);

const FACTOR = 'must be a decimal as text, such as "0.5": up to 3 digits before the point and 6 after it';
const factor = (description: string) =>
  z
    .string(FACTOR)
    .regex(/^\d{1,3}(\.\d{1,6})?$/, FACTOR)
    .optional()
    .meta({ description, example: '0.5' });

const TRAIT = 'must be what the provider calls it, such as 1024x1024: 1 to 64 characters of a-z 0-9 - _';
const trait = (name: 'size' | 'quality') =>
  z
    .string(TRAIT)
    .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, TRAIT)
    .optional()
    .meta({
      description: `For images or videos of this ${name}. A call of which it is not known has no cost.`,
      example: name === 'size' ? '1024x1024' : 'high',
    });

const PRICE_NAMES = ['input', 'cached_input', 'cache_write', 'cache_write_1h', 'output', 'extra'] as const;

const tier = z
  .strictObject({
    above: z.int('must be a number of tokens').min(0, 'must be a number of tokens').optional().meta({
      description: 'For calls with more input tokens than this, for all of their tokens.',
      example: 200_000,
    }),
    between: z
      .tuple([timeOfDay, timeOfDay])
      .optional()
      .meta({ description: 'For calls that start in this part of the UTC day. It may include midnight.' }),
    service_tier: searchText().optional().meta({
      description:
        'For calls of this service tier. Calls of a tier that no entry names have no cost, because tiers are priced differently.',
      example: 'batch',
    }),
    size: trait('size'),
    quality: trait('quality'),
    factor: factor(
      'In place of prices: what tokens cost, in parts of their usual price. Images, searches and other counted units keep their price.',
    ),
    cached_factor: factor('The same for tokens read from the cache. Absent: `factor`.'),
    ...z.object({ ...tokenPrices, extra }).partial().shape,
  })
  .refine(
    ({ above, between, service_tier: serviceTier, size, quality }) =>
      (above ?? between ?? serviceTier ?? size ?? quality) !== undefined,
    'must have above, between, service_tier, size or quality',
  )
  .refine(
    (entry) => entry.factor === undefined || PRICE_NAMES.every((name) => entry[name] === undefined),
    'must have prices or a factor, not both',
  )
  .refine(
    ({ factor: all, cached_factor: cached }) => cached === undefined || all !== undefined,
    'must have a factor beside cached_factor',
  );

const tiers = z
  .array(tier, 'must be a list of prices with a condition each')
  .min(1, 'must not be empty; null for none')
  .max(MAX_TIERS, `must have at most ${MAX_TIERS} entries`)
  .nullable()
  .meta({ description: ABOUT.tiers }) as z.ZodType<Tier[] | null>;

const note = z
  .string('must be text of at most 1,024 characters')
  .max(1_024, 'must be text of at most 1,024 characters')
  .nullable()
  .meta({ description: ABOUT.note, example: 'Contract of January' });

const amounts = { ...tokenPrices, per_call: price(ABOUT.per_call), extra, tiers, note };

const PROVIDER = z.string().meta({ description: 'Name of the provider.', example: 'openai' });
const LIST = z.string().nullable().meta({
  description: "The provider's price list; null if it has none.",
  example: 'openai',
});
const CALLED_MODEL = z.string().meta({ description: 'The model as calls name it.', example: 'gpt-4o-mini' });

/** A price as the API shows it. */
export const priceSchema = z
  .strictObject({
    id: shownId('the price'),
    catalog: z.string().meta({ description: ABOUT.catalog, example: 'openai' }),
    model: z.string().meta({ description: ABOUT.model, example: 'gpt-4o*' }),
    effective_from: timestamp(ABOUT.effective_from),
    ...amounts,
    source: z.enum(PRICE_SOURCES).meta({
      description: '`catalog`: taken from the catalog that comes with Postern; `custom`: set by people.',
    }),
    version: version(),
    created_at: timestamp('When it was stored.'),
  })
  .meta({ id: 'Price' });
export type PriceView = z.output<typeof priceSchema>;

export const pricePageSchema = pageOf('PricePage', priceSchema);

const optionalAmounts = z.object(amounts).partial().shape;

/** Without a price at all it would say that the model is free, which `"input": "0"` says. */
const hasPrice = (body: Record<string, unknown>) =>
  ['input', 'output', 'per_call', 'extra'].some((name) => (body[name] ?? null) !== null);

/** `POST /admin/v1/prices` */
export const newPriceSchema = z
  .strictObject({
    catalog: z
      .string(CATALOG)
      .regex(PROVIDER_NAME, CATALOG)
      .meta({ description: ABOUT.catalog, example: 'openai' }),
    model: z
      .string(MODEL)
      .regex(/^[^*]*\*?$/, MODEL)
      .pipe(searchText(MODEL))
      .meta({ description: ABOUT.model, example: 'gpt-4o*' }),
    effective_from: time()
      .default(new Date(0))
      .meta({
        description: `${ABOUT.effective_from} Absent: it has always applied.`,
        example: EXAMPLE_TIME,
      }),
    ...optionalAmounts,
  })
  .refine(hasPrice, 'give at least one of input, output, per_call and extra; "0" for what is free')
  .meta({
    id: 'NewPrice',
    example: { catalog: 'mine', model: 'llama-3*', input: '0.20', output: '0.60' },
  });
export type NewPrice = z.output<typeof newPriceSchema>;

/** `PATCH /admin/v1/prices/:id`; what a price is for cannot change: rows of the log refer to it. */
export const priceChangeSchema = z
  .strictObject({
    effective_from: time().optional().meta({ description: ABOUT.effective_from, example: EXAMPLE_TIME }),
    ...optionalAmounts,
  })
  .meta({ id: 'PriceChange', example: { output: '0.50' } });
export type PriceChange = z.output<typeof priceChangeSchema>;

/** `GET /admin/v1/prices` */
export const priceFilterSchema = z.strictObject({
  catalog: searchText()
    .optional()
    .meta({ description: 'Only prices of this price list or provider.', example: 'openai' }),
  model: searchText()
    .optional()
    .meta({ description: 'Only prices with exactly this model or pattern.', example: 'gpt-4o*' }),
  source: oneOf(PRICE_SOURCES).optional().meta({ description: 'Only prices from this source.' }),
  ...paging,
});
export type PriceFilter = z.output<typeof priceFilterSchema>;

/** `GET /admin/v1/prices/resolve` */
export const resolveQuerySchema = z.strictObject({
  provider: searchText().meta({ description: 'Name of the provider.', example: 'openai' }),
  model: searchText().meta({ description: 'The model as calls name it.', example: 'gpt-4o-mini' }),
  at: time().optional().meta({ description: 'Start of the call. Absent: now.', example: EXAMPLE_TIME }),
});
export type ResolveQuery = z.output<typeof resolveQuerySchema>;

export const resolutionSchema = z
  .strictObject({
    provider: PROVIDER,
    catalog: LIST,
    model: CALLED_MODEL,
    at: timestamp('The time asked for.'),
    price: priceSchema.nullable().meta({ description: 'The price that applies; null if none does.' }),
    reason: z.string().meta({
      description: 'Why this price, or why none.',
      example: 'The price of the catalog for gpt-4o-mini.',
    }),
  })
  .meta({ id: 'PriceResolution' });
export type Resolution = z.output<typeof resolutionSchema>;

/** How far back models without a price are looked for at least: rows of these days get their costs without `reprice`. */
export const MISSING_DAYS = 7;

/** `GET /admin/v1/prices/missing` */
export const missingQuerySchema = withTimeRange(
  z.strictObject({
    from: time().optional().meta({
      description:
        'Calls that started at this time or later. Default: 7 days ago, or the begin of the month in `REPORT_TIMEZONE` if that is earlier.',
      example: EXAMPLE_TIME,
    }),
    to: time().optional().meta({
      description: 'Calls that started before this time. Default: now.',
      example: EXAMPLE_TIME,
    }),
  }),
);
export type MissingQuery = z.output<typeof missingQuerySchema>;

export const missingPricesSchema = z
  .strictObject({
    data: z
      .array(
        z.strictObject({
          provider: PROVIDER,
          catalog: LIST,
          model: CALLED_MODEL,
          first_day: z.string().meta({ description: 'First UTC day of such a call.', example: '2026-01-29' }),
          last_day: z.string().meta({ description: 'Last UTC day of such a call.', example: '2026-01-31' }),
          calls: z.int().meta({
            description: 'Calls with tokens or other units and without a cost.',
            example: 120,
          }),
        }),
      )
      .meta({ description: 'The models, by provider.' }),
    from: timestamp('Calls that started at this time or later are counted.'),
    to: timestamp('Calls that started before this time are counted.'),
  })
  .meta({ id: 'MissingPrices' });
export type MissingPrices = z.output<typeof missingPricesSchema>;

/** `POST /admin/v1/prices/reprice` */
export const repricingSchema = z
  .strictObject({
    from: time().meta({ description: 'Calls that started at this time or later.', example: EXAMPLE_TIME }),
    to: time().meta({ description: 'Calls that started before this time.', example: EXAMPLE_TIME }),
    model: searchText().optional().meta({ description: 'Only calls of this model.', example: 'gpt-4o-mini' }),
    dry_run: flag().default(false).meta({ description: 'Only count what would change.' }),
    cursor: paging.cursor.meta({ description: '`next_cursor` of the response before.' }),
  })
  .refine(({ from, to }) => from < to, { message: 'must be before to', path: ['from'] })
  .meta({
    id: 'Repricing',
    example: { from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z', dry_run: true },
  });
export type Repricing = z.output<typeof repricingSchema>;

export const repricedSchema = z
  .strictObject({
    rows: z.int().meta({
      description:
        'Calls with tokens or other units whose cost the provider did not report, of this request.',
      example: 1200,
    }),
    changed: z
      .int()
      .meta({ description: 'Calls whose cost or price changed, or would change.', example: 12 }),
    cost_before: z.string().meta({ description: 'Sum of their costs in USD.', example: '12.345678900' }),
    cost_after: z.string().meta({ description: 'Sum of their costs in USD.', example: '12.345678900' }),
    dry_run: z.boolean().meta({ description: 'True if nothing was changed.' }),
    next_cursor: z.string().nullable().meta({
      description: 'Send the request again with this as `cursor` to go on; null at the end of the range.',
      example: 'MTc2NzIyNTYwMDAwMCAwMTg5MGE1ZC1hYzk2LTc3NGItYmNjZS1iMzAyMDk5YTgwNTc',
    }),
  })
  .meta({ id: 'Repriced' });
export type RepricedView = z.output<typeof repricedSchema>;

export const priceId = pathId('price');

import { z } from 'zod';
import { isUuid } from '../database/page.js';
import { containsKeyFormat } from '../platform/api-key.js';

/**
 * Fields that the schemas of several modules share. Each message completes "<field>: …" and names a valid value; each
 * description is shown in the OpenAPI document.
 */

const MAX_NAME_LENGTH = 100;
const MAX_TEXT_LENGTH = 1_024;
const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 500;
/** An ID, for examples. @internal */
export const EXAMPLE_ID = '01890a5d-ac96-774b-bcce-b302099a8057';
/** A time, for examples. @internal */
export const EXAMPLE_TIME = '2026-01-31T12:00:00.000Z';
/** The time of something that will end, for examples. @internal */
export const EXAMPLE_EXPIRY = '2030-01-31T12:00:00.000Z';

const EXAMPLE_CURSOR = 'AaICky58duGSEqvtqqRdvw';

/**
 * Control and formatting characters, lone surrogates, line separators. Postgres rejects NUL; the others can mislead a reader.
 *
 * @internal
 */
export const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** A name that people give to a team or a key. */
export function name() {
  const remedy = `must be text of 1 to ${MAX_NAME_LENGTH} printable characters without spaces at its ends`;
  return z
    .string(remedy)
    .refine((text) => text.trim() === text && !UNPRINTABLE.test(text), remedy)
    .refine((text) => text.length > 0 && [...text].length <= MAX_NAME_LENGTH, remedy)
    .refine((text) => !containsKeyFormat(text), 'must not contain a gateway key; choose another name');
}

/** A team by its name or id. */
export function team() {
  return searchText('must be the name or the id of a team');
}

/** Text that a filter compares with a column. */
export function searchText(
  remedy = `must be text of 1 to ${MAX_TEXT_LENGTH} printable characters, given once`,
) {
  return z
    .string(remedy)
    .refine((text) => text.length > 0 && text.length <= MAX_TEXT_LENGTH && !UNPRINTABLE.test(text), remedy);
}

/** An ID of an object. */
export function id(of: string) {
  const remedy = `must be the id of a ${of}, such as ${EXAMPLE_ID}`;
  return z.string(remedy).refine(isUuid, remedy);
}

/** The ID in a path. It is not validated: anything that is not an ID is not found, so the response is 404. */
export function pathId(of: string) {
  return z.string().meta({ description: `ID of the ${of}.`, format: 'uuid', example: EXAMPLE_ID });
}

/** An ISO 8601 time with a zone, parsed to a Date. */
export function time() {
  const remedy = 'must be an ISO 8601 time with a zone, such as 2030-01-31T12:00:00Z';
  return (
    z.iso
      .datetime({ offset: true, error: remedy })
      .transform((text) => new Date(text))
      // In UTC some times have a year of more than four digits, which this schema would not accept back.
      .refine((at) => /^\d{4}-/.test(at.toISOString()), remedy)
  );
}

/** Rejects a time range whose end comes before its start, which would silently match nothing. */
export function withTimeRange<T extends z.ZodType<{ from?: Date; to?: Date }>>(filter: T): T {
  return filter.refine(({ from, to }) => from === undefined || to === undefined || from <= to, {
    path: ['from'],
    message: 'must not be later than to',
  });
}

/** One of a fixed list of values. */
export function oneOf<const T extends readonly string[]>(words: T) {
  return z.enum(words, `must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`);
}

/** A boolean. */
export function flag() {
  return z.boolean('must be true or false');
}

/** Paging of lists. Values come from a query string or a command line, so numbers arrive as text. */
export const paging = {
  limit: z
    .string(`must be an integer from 1 to ${MAX_LIMIT}, given once`)
    .regex(/^\d{1,3}$/, `must be an integer from 1 to ${MAX_LIMIT}`)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= MAX_LIMIT, `must be an integer from 1 to ${MAX_LIMIT}`)
    .default(DEFAULT_LIMIT)
    .meta({
      description: 'Maximum number of rows.',
      type: 'integer',
      minimum: 1,
      maximum: MAX_LIMIT,
      example: DEFAULT_LIMIT,
    }),
  cursor: z.string('must be the next_cursor of the previous page, given once').optional().meta({
    description: '`next_cursor` of the previous page.',
    example: EXAMPLE_CURSOR,
  }),
};

/** For endpoints without fields. @internal */
export const nothingSchema = z.strictObject({}).meta({ id: 'Nothing', example: {} });

/** An ISO 8601 time in UTC, for responses. */
export function timestamp(description: string, example = EXAMPLE_TIME) {
  return z.iso.datetime({ offset: true }).meta({ description, example });
}

/**
 * An ID, for responses.
 *
 * @param of what it identifies, such as `the team`
 */
export function shownId(of: string) {
  return z.uuid().meta({ description: `ID of ${of}.`, example: EXAMPLE_ID });
}

/** The version of an object, for responses. */
export function version() {
  return z.int().meta({ description: 'Increases with every change.', example: 1 });
}

/**
 * One page of a list.
 *
 * @param name of the page in the OpenAPI document
 * @param more members of the page itself
 */
export function pageOf<T extends z.ZodType, M extends z.ZodRawShape = Record<never, never>>(
  name: string,
  item: T,
  more?: M,
) {
  return z
    .strictObject({
      ...(more ?? ({} as M)),
      data: z.array(item).meta({ description: 'The entries of this page.' }),
      next_cursor: z.string().nullable().meta({
        description: 'Send as `cursor` to get the next page; null on the last page.',
        example: EXAMPLE_CURSOR,
      }),
    })
    .meta({ id: name });
}

/** Every error of the admin API. @internal */
export const errorSchema = z
  .strictObject({
    error: z
      .strictObject({
        message: z.string().meta({
          description: 'What is wrong and how to fix it, in words.',
          example: 'id: no team has this name or id; list the teams, or create it first',
        }),
        code: z.string().meta({
          description: 'Error code for programs, for example `invalid_request`, `not_found` or `conflict`.',
          example: 'not_found',
        }),
        details: z
          .array(
            z.strictObject({
              field: z.string().meta({ description: 'Name of the field.', example: 'id' }),
              message: z.string().meta({
                description: 'What is wrong with it and how to fix it.',
                example: 'no team has this name or id; list the teams, or create it first',
              }),
            }),
          )
          .meta({ description: 'One entry for each field that is wrong.' }),
      })
      .meta({ description: 'The error.' }),
  })
  .meta({ id: 'Error' });

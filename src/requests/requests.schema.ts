import { z } from 'zod';
import { isUuid } from '../database/page.js';
import { SHOWN_LENGTH } from '../platform/api-key.js';
import { EXPORT_FORMATS } from './export-format.js';
import { OUTCOMES } from '../request-log/request-log.entity.js';
import { STATUS_FILTER } from './request-query.js';
import { oneOf, paging, searchText, team, time } from '../admin/fields.schema.js';

const STATUS = 'must be a status such as 429, or a class of them such as 5xx';
const KEY = `must be the id of a key or the first ${SHOWN_LENGTH} characters of its secret; never send a whole key`;
const KEY_PREFIX = new RegExp(`^ptn_[0-9A-Za-z]{${SHOWN_LENGTH - 4}}$`);
const ROWS = 'must be an integer from 1 to 1000000000, given once; leave it out for all';

/** Which calls: the same for list, export and usage. */
export const callFilter = {
  team: team().optional(),
  key: z
    .string(KEY)
    .refine((text) => isUuid(text) || KEY_PREFIX.test(text), KEY)
    .optional(),
  provider: searchText().optional(),
  model: searchText().optional(),
  status: z.string(STATUS).regex(STATUS_FILTER, STATUS).optional(),
  outcome: oneOf(OUTCOMES).optional(),
  from: time().optional(),
  to: time().optional(),
  recorded_after: time().optional(),
};

/** `GET /admin/v1/requests` and `postern requests list` */
export const requestFilterSchema = z.strictObject({ ...callFilter, ...paging });

/** `GET /admin/v1/requests/export` and `postern requests export` */
export const exportSchema = z.strictObject({
  ...callFilter,
  format: oneOf(EXPORT_FORMATS).default('ndjson'),
  limit: z
    .string(ROWS)
    .regex(/^[1-9]\d{0,9}$/, ROWS)
    .transform(Number)
    .refine((limit) => limit <= 1_000_000_000, ROWS)
    .optional(),
  cursor: paging.cursor,
});

const LINES = 'must be an integer from 0 to 500';

/** `postern requests tail`: what comes, so without times. */
export const tailSchema = z
  .strictObject({
    ...callFilter,
    lines: z
      .string(LINES)
      .regex(/^\d{1,3}$/, LINES)
      .transform(Number)
      .refine((lines) => lines <= 500, LINES)
      .default(10),
  })
  .omit({ from: true, to: true, recorded_after: true });

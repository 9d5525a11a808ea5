import { z } from 'zod';
import { OUTCOMES } from '../request-log/request-log.entity.js';
import { STATUS_FILTERS } from '../request-log/request-query.js';
import { id, oneOf, paging, searchText, team, time } from './fields.schema.js';

/** `GET /admin/v1/requests` and `postern requests list` */
export const requestFilterSchema = z.strictObject({
  team: team().optional(),
  key: id('key').optional(),
  provider: searchText().optional(),
  model: searchText().optional(),
  status: oneOf(STATUS_FILTERS).optional(),
  outcome: oneOf(OUTCOMES).optional(),
  from: time().optional(),
  to: time().optional(),
  recorded_after: time().optional(),
  ...paging,
});

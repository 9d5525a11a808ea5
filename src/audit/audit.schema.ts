import { z } from 'zod';
import { ACTIONS, SUBJECT_TYPES } from './record-change.js';
import { id, oneOf, paging, searchText, time } from '../admin/fields.schema.js';

/** `GET /admin/v1/audit` */
export const auditFilterSchema = z.strictObject({
  actor: searchText().optional(),
  action: oneOf(ACTIONS).optional(),
  subject_type: oneOf(SUBJECT_TYPES).optional(),
  subject_id: id('team, key or provider').optional(),
  subject_name: searchText().optional(),
  from: time().optional(),
  to: time().optional(),
  ...paging,
});

import { z } from 'zod';
import { name, paging } from '../admin/fields.schema.js';

/** `POST /admin/v1/teams` and `postern teams create` */
export const newTeamSchema = z.strictObject({ name: name() });

/** `PATCH /admin/v1/teams/:id` */
export const teamChangeSchema = z.strictObject({
  name: name().optional(),
  disabled: z.boolean('must be true or false').optional(),
});

/** `GET /admin/v1/teams` and `postern teams list` */
export const teamFilterSchema = z.strictObject(paging);

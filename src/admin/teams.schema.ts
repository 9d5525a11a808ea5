import { z } from 'zod';
import { name, paging } from './fields.schema.js';

/** `POST /admin/v1/teams` and `postern teams create` */
export const newTeamSchema = z.strictObject({ name: name() });

/** `GET /admin/v1/teams` and `postern teams list` */
export const teamFilterSchema = z.strictObject(paging);

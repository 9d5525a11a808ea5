import type { ResponseOf } from '../../api/client';

export type Team = ResponseOf<'/admin/v1/teams/{id}', 'get'>;

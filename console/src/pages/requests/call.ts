import type { ResponseOf } from '../../api/client';

/** A call as the list shows it. */
export type Call = ResponseOf<'/admin/v1/requests', 'get'>['data'][number];
/** A call with its attempts. */
export type ShownCall = ResponseOf<'/admin/v1/requests/{id}', 'get'>;

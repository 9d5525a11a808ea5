import { SetMetadata } from '@nestjs/common';

/** What `@PublicRoute()` leaves. */
export const PUBLIC_ROUTE = 'postern:public-route';

/**
 * Says of a controller, or of one handler, that it has no guard on purpose: anybody who reaches the port may call it. The
 * start names all other routes without a guard.
 */
export const PublicRoute = (): ClassDecorator & MethodDecorator => SetMetadata(PUBLIC_ROUTE, true);

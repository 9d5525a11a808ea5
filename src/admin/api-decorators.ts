import type * as Swagger from '@nestjs/swagger';

type Name = {
  [N in keyof typeof Swagger]: N extends `Api${string}`
    ? (typeof Swagger)[N] extends (...args: never[]) => unknown
      ? N
      : never
    : never;
}[keyof typeof Swagger];
type Factory = (...args: unknown[]) => (...target: unknown[]) => void;

const waiting: ((swagger: typeof Swagger) => void)[] = [];

/** Takes the place of a decorator of @nestjs/swagger until the API document is built. */
function later<N extends Name>(name: N): (typeof Swagger)[N] {
  const factory: Factory =
    (...args) =>
    (...target) =>
      void waiting.push((swagger) => (swagger[name] as unknown as Factory)(...args)(...target));
  return factory;
}

/*
 * The decorators of @nestjs/swagger that the gateway's own controllers use. They load @nestjs/swagger only when somebody
 * asks for the API document: it is more than 500 files, and a tenth of what a process needs to start. Modules of your own may import
 * @nestjs/swagger itself.
 */
export const ApiBearerAuth = later('ApiBearerAuth');
/** @beta */
export const ApiBody = later('ApiBody');
/** @beta */
export const ApiCreatedResponse = later('ApiCreatedResponse');
export const ApiExcludeController = later('ApiExcludeController');
/** @beta */
export const ApiHeader = later('ApiHeader');
/** @beta */
export const ApiNoContentResponse = later('ApiNoContentResponse');
/** @beta */
export const ApiOkResponse = later('ApiOkResponse');
/** @beta */
export const ApiOperation = later('ApiOperation');
/** @beta */
export const ApiResponse = later('ApiResponse');
export const ApiTags = later('ApiTags');

/** Applies the decorators that wait, in their order. */
export function applyApiDecorators(swagger: typeof Swagger): void {
  for (const apply of waiting.splice(0)) apply(swagger);
}

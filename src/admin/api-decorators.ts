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
/** `@ApiBody()` of @nestjs/swagger, which is loaded only for the API document. */
export const ApiBody = later('ApiBody');
/** `@ApiCreatedResponse()` of @nestjs/swagger, which is loaded only for the API document. */
export const ApiCreatedResponse = later('ApiCreatedResponse');
export const ApiExcludeController = later('ApiExcludeController');
/** `@ApiHeader()` of @nestjs/swagger, which is loaded only for the API document. */
export const ApiHeader = later('ApiHeader');
/** `@ApiNoContentResponse()` of @nestjs/swagger, which is loaded only for the API document. */
export const ApiNoContentResponse = later('ApiNoContentResponse');
/** `@ApiOkResponse()` of @nestjs/swagger, which is loaded only for the API document. */
export const ApiOkResponse = later('ApiOkResponse');
/** `@ApiOperation()` of @nestjs/swagger, which is loaded only for the API document. */
export const ApiOperation = later('ApiOperation');
/** `@ApiResponse()` of @nestjs/swagger, which is loaded only for the API document. */
export const ApiResponse = later('ApiResponse');
export const ApiTags = later('ApiTags');

/** Applies the decorators that wait, in their order. */
export function applyApiDecorators(swagger: typeof Swagger): void {
  for (const apply of waiting.splice(0)) apply(swagger);
}

import { z } from 'zod';

export interface VariableDescription {
  name: string;
  /** The type of the value, in words. */
  type: string;
  required: boolean;
  /** The default as text, if there is one. */
  default: string | undefined;
  description: string;
  /** True if the variable should be given as NAME_FILE. */
  secret: boolean;
}

const secretNames = /(PASSWORD|SECRET|PEPPER|DATABASE_URL|DASHBOARD_CLIENT|SSL_KEY|MAC_KEYS|SECRET_KEYS|SIGNING_KEY)$/;

/** Describes the variables of a schema, for docs/configuration.md. */
export function describeConfig(schema: z.ZodObject): VariableDescription[] {
  return Object.entries(schema.shape).map(([name, type]) => {
    const { defaultValue } = type._zod.def as { defaultValue?: unknown };
    return {
      name,
      type: typeTitle(type),
      required: !z.safeParse(type, undefined).success,
      default: defaultValue === undefined ? undefined : String(defaultValue),
      description: z.globalRegistry.get(type)?.description ?? '',
      secret: secretNames.test(name),
    };
  });
}

/** Returns the title of a type, or of the type that it wraps. */
function typeTitle(type: z.core.$ZodType): string {
  const { title } = z.globalRegistry.get(type) ?? {};
  if (title !== undefined) return title;
  if (type instanceof z.ZodEnum) return type.options.join(', ');
  const def = type._zod.def as { innerType?: z.core.$ZodType; in?: z.core.$ZodType };
  const inner = def.innerType ?? def.in;
  return inner === undefined ? 'text' : typeTitle(inner);
}

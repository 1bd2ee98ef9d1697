/** What clients are found by, with `?` for the value: each has an index of its own (migration 0014). */
export const clientFilters = {
  email: 'exact_key(email) = exact_key(?)',
  registration_number: 'exact_key(registration_number) = exact_key(?)',
  q: "array_to_tsvector(name_words(coalesce(company_name, first_name || ' ' || last_name))) @@ name_query(?)",
};

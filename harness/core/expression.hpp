// The small expression language of op.json: integer and string terms over a case's sizes and params.
//
//   expr   := or ('?' expr ':' expr)?        or := and ('||' and)*       and := cmp ('&&' cmp)*
//   cmp    := sum (('=='|'!='|'<'|'<='|'>'|'>=') sum)?
//   sum    := term (('+'|'-') term)*         term := unary (('*'|'/'|'%') unary)*      unary := '!' unary | '-' unary | atom
//   atom   := integer | 'string' | name | name '.' name | 'min(' expr ',' expr ')' | 'max(' … ')' | 'ceil_div(' … ')' | '('
//   expr ')'
//
// Integers are 64-bit and checked: overflow and division by zero are errors. Flags are 0 and 1.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <variant>

namespace dcpcheck {

using Term = std::variant<std::int64_t, std::string>;
using Environment = std::map<std::string, Term, std::less<>>;

class Expression {
 public:
  Expression() = default;
  // Parses `text`; throws InputError with the text, the column and what was expected.
  explicit Expression(std::string_view text);

  bool empty() const { return root_ == nullptr; }
  const std::string& text() const { return text_; }

  // The value in `environment`; throws InputError on an unknown name, mixed types, overflow or division by zero.
  Term evaluate(const Environment& environment) const;
  std::int64_t integer(const Environment& environment) const;
  bool truth(const Environment& environment) const { return integer(environment) != 0; }

  // The names that it asks the environment for.
  std::set<std::string> names() const;

  struct Node;

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace dcpcheck
